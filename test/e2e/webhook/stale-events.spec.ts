import { expect, it } from '@jest/globals';
import { PaymentInbox } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { webhookRequest, onOneAdapter, stored } from '../../support/webhook/handler-application.js';
import { Orders } from '../../support/webhook/webhook-application.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';

const HOUR = 3_600_000;
const LIMIT = { maxAgeMs: HOUR };

/** Returns a stopped clock, and a function that returns the timestamp of an event with the given age. */
function clock() {
  const runtime = new FakeRuntime();
  return { runtime, ago: (ms: number) => new Date(runtime.now() - ms).toISOString() };
}

onOneAdapter('stale events', (start) => {
  it('SE-09 a stale event gets 200, is stored without being handled, and is handled after a redrive', async () => {
    const { runtime, ago } = clock();
    await using app = await start({ providers: [Orders], payments: { runtime, webhook: LIMIT } });
    const orders = app.app.get(Orders);
    const inbox = app.app.get(PaymentInbox);
    const sent = webhookRequest({ id: 'e-1', timestamp: ago(50 * HOUR) });
    expect(await app.send(sent)).toMatchObject({
      status: 200,
      body: { received: true, status: 'stale', id: 'e-1' },
    });
    expect(await stored(app, 'e-1')).toMatchObject({ stale: true, deliveries: [] });
    expect(await inbox.stats()).toMatchObject({
      stale: { count: 1, more: false },
      unhandled: { count: 0 },
      deliveries: [],
    });
    expect((await inbox.list({ state: 'stale' })).events.map(({ id }) => id)).toEqual(['e-1']);
    expect((await inbox.list({ state: 'unhandled' })).events).toEqual([]);
    expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    expect(orders.seen).toEqual([]);
    expect(app.log.matching(/^warn .*stale/)).toEqual([
      'warn Event e-1 (company default) of type "transaction.completed" is from 2025-12-29T22:00:00.000Z, which is ' +
        'longer ago than "webhook.maxAgeMs" (3600000 ms) allows. It may be a replay of an event whose id was deleted, so ' +
        'it is stored as stale and no handler runs. If the event is only late, redrive it. If events can be this late, raise ' +
        '"webhook.maxAgeMs" and, with a durable inbox, "worker.retainIdsMs". PaymentInbox',
    ]);
    expect(await inbox.redrive({ state: 'stale' })).toEqual({ events: 1, deliveries: 1 });
    // The response to a copy waits for the running handlers.
    await app.send(sent);
    expect(orders.count('e-1')).toBe(1);
    expect(await inbox.stats()).toMatchObject({ stale: { count: 0 } });
    expect(await stored(app, 'e-1')).toMatchObject({
      stale: false,
      deliveries: [{ state: 'done' }],
    });
  });

  it('SE-09 an event exactly as old as the limit is handled, and an older event is not', async () => {
    const { runtime, ago } = clock();
    await using app = await start({ providers: [Orders], payments: { runtime, webhook: LIMIT } });
    for (const [ms, status] of [
      [HOUR, 'handled'],
      [HOUR + 1, 'stale'],
      [-HOUR, 'handled'],
    ] as const) {
      const sent = webhookRequest({ id: String(ms), timestamp: ago(ms) });
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status } });
    }
  });

  it('SE-09 a copy of a stored event is a duplicate at any age', async () => {
    const { runtime, ago } = clock();
    await using app = await start({ providers: [Orders], payments: { runtime, webhook: LIMIT } });
    const sent = webhookRequest({ id: 'e-1', timestamp: ago(0) });
    expect(await app.send(sent)).toMatchObject({ body: { status: 'handled' } });
    runtime.advance(2 * HOUR);
    expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    expect(await stored(app, 'e-1')).toMatchObject({ stale: false });
    expect(app.log.matching(/stale/)).toEqual([]);
  });

  it('SE-09 stale events are logged once per minute and type, even without a handler for the type', async () => {
    const { runtime, ago } = clock();
    await using app = await start({ providers: [Orders], payments: { runtime, webhook: LIMIT } });
    const send = async (eventType: string) => {
      const sent = webhookRequest({ eventType, timestamp: ago(2 * HOUR) });
      expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'stale' } });
    };
    const warned = () => app.log.matching(/^warn .*stale/);
    for (let copies = 0; copies < 20; copies += 1) await send('transaction.completed');
    await send('payout.settled');
    expect(warned()).toHaveLength(2);
    runtime.advance(60_000);
    expect(warned()).toHaveLength(3);
    expect(warned()[2]).toContain('(18 more since the previous line)');
    expect(app.log.matching(/No handler takes/)).toEqual([]);
    expect(await app.app.get(PaymentInbox).stats()).toMatchObject({
      stale: { count: 21 },
      unhandled: { count: 0 },
    });
  });

  it('SE-09 WH-10 a webhook.test event is never stale', async () => {
    const { runtime, ago } = clock();
    await using app = await start({ payments: { runtime, webhook: LIMIT } });
    const sent = webhookRequest({ id: 'e-1', eventType: 'webhook.test', timestamp: ago(2 * HOUR) });
    expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'unhandled' } });
    expect(await stored(app, 'e-1')).toMatchObject({ stale: false });
    expect(app.log.matching(/^log Test event e-1/)).toHaveLength(1);
  });

  it('SE-09 a stale event that a controller of the application receives is stored as stale', async () => {
    const { runtime, ago } = clock();
    await using app = await start({
      payments: { runtime, webhook: LIMIT, webhookPath: false },
      controllers: [OnMethods],
      providers: [Orders],
    });
    const sent = webhookRequest({ id: 'e-1', timestamp: ago(2 * HOUR) });
    const response = await app.send(sent, { path: '/method' });
    expect(response).toMatchObject({ status: 200, body: { status: 'stale', id: 'e-1' } });
    expect(app.app.get(Orders).seen).toEqual([]);
  });

  it('SE-09 a redrive selects stale events only if the query names their state or their ids', async () => {
    const { runtime, ago } = clock();
    await using app = await start({ providers: [Orders], payments: { runtime, webhook: LIMIT } });
    for (const id of ['e-1', 'e-2']) {
      await app.send(webhookRequest({ id, timestamp: ago(2 * HOUR) }));
    }
    const inbox = app.app.get(PaymentInbox);
    const handlers = (await inbox.handlers()).map(({ name }) => name);
    const one = { events: 1, deliveries: 1 };
    for (const query of [{}, { handlers }, { handlers, force: true }, { state: 'unhandled' }]) {
      expect(await inbox.redrive(query as object)).toEqual({ events: 0, deliveries: 0 });
    }
    expect(await inbox.redrive({ handlers, ids: ['e-1'] })).toEqual(one);
    expect(await inbox.redrive({ handlers, state: 'stale', dryRun: true })).toEqual(one);
    expect(await inbox.redrive({ handlers, state: 'stale' })).toEqual(one);
  });
});
