// The bare Nest route: parses the JSON and answers 200. It verifies nothing.
import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { answer, configuration } from '../processes/parent.ts';
import { listen } from './nest.ts';
import type { Adapter } from './nest.ts';

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
answer(`${await app.getUrl()}/webhooks/payments`, { end: () => app.close() });
