import { Module } from '@nestjs/common';
import { DatabaseModule } from '../database/database.module.js';
import { LiveModule } from '../live/live.module.js';
import { LedgerPageController } from './ledger-page.controller.js';
import { LedgerController } from './ledger.controller.js';
import { LiveLedgerService } from './live-ledger.service.js';

/** The ledger of recorded payments: its API and its page. */
@Module({
  imports: [DatabaseModule, LiveModule],
  controllers: [LedgerController, LedgerPageController],
  providers: [LiveLedgerService],
  exports: [LiveLedgerService],
})
export class LedgerModule {}
