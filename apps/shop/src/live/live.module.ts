import { Module } from '@nestjs/common';
import { EventStreamsService } from './event-streams.service.js';

/** Server-sent events for pages that update themselves. `PolledValues` finds the changes. */
@Module({
  providers: [EventStreamsService],
  exports: [EventStreamsService],
})
export class LiveModule {}
