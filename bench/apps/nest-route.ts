// A Nest route without verification: it parses the JSON and responds with 200.
import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen } from './nest-application.ts';
import type { Adapter } from './nest-application.ts';

class Webhooks {
  receive(body: { id?: unknown }): void {
    if (typeof body.id !== 'string') throw new TypeError('The body was not parsed.');
  }
}
const method = Object.getOwnPropertyDescriptor(Webhooks.prototype, 'receive')!;
Post()(Webhooks.prototype, 'receive', method);
HttpCode(200)(Webhooks.prototype, 'receive', method);
Body()(Webhooks.prototype, 'receive', 0);
Controller('webhooks/payments')(Webhooks);

const { adapter } = configuration() as { adapter: Adapter };
const app = await listen(adapter, { controllers: [Webhooks] });
serveCommands(`${await app.getUrl()}/webhooks/payments`, { end: () => app.close() });
