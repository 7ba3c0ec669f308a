import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { memoryInbox, OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { webhookRequest, onOneAdapter, stored } from '../../support/webhook/handler-application.js';

let ran: string[] = [];

@Injectable()
class Orders {
  @OnPaymentEvent('*')
  quick(event: PaymentEvent): void {
    ran.push(event.id);
  }
}

/** An event whose body has about `bytes` bytes. */
function sized(id: string, bytes: number) {
  return webhookRequest({ id, data: { padding: 'x'.repeat(bytes) } });
}

onOneAdapter('the memory inbox', (start) => {
  it('the memory inbox removes the bodies of finished events beyond maxBytes, and still recognises their copies', async () => {
    ran = [];
    const inbox = memoryInbox({ maxBytes: 10_000 });
    await using app = await start({ providers: [Orders], payments: { inbox } });
    const first = sized('e-1', 4000);
    for (const sent of [first, sized('e-2', 4000), sized('e-3', 4000)]) {
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'handled' } });
    }
    expect((await stored(app, 'e-1')).raw).toBeNull();
    expect((await stored(app, 'e-2')).raw).not.toBeNull();
    expect(await app.send(first)).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    await app.send(sized('e-1', 4001));
    expect(app.log.matching(/e-1.*another body/)).toHaveLength(1);
    expect(ran).toEqual(['e-1', 'e-2', 'e-3']);
  });

  it('IN-07 the memory inbox treats a copy as a duplicate until its retention ends, and as new afterwards', async () => {
    ran = [];
    const runtime = new FakeRuntime();
    const worker = { retainEventsMs: 60_000, retainIdsMs: 60_000 };
    await using app = await start({ providers: [Orders], payments: { worker, runtime } });
    const timestamp = new Date(runtime.now()).toISOString();
    const sent = webhookRequest({ id: 'e-1', timestamp });
    await app.send(sent);
    const pruneAfter = (ms: number) => {
      runtime.advance(ms);
      return app.app.get(PaymentInbox).prune();
    };
    await pruneAfter(60_000);
    expect((await app.send(sent)).body['status']).toBe('duplicate');
    await pruneAfter(1);
    expect((await app.send(sent)).body['status']).toBe('handled');
    expect(ran).toEqual(['e-1', 'e-1']);
  });
});
