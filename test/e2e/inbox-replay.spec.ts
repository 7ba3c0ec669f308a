import { expect, it } from '@jest/globals';
import { systemRuntime } from '../../libs/payments/src/runtime/payments-runtime.js';
import { delivery } from '../support/webhook/handler-application.js';
import { inboxOf, startOn } from '../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import type { InboxData } from '../support/inbox/durable-inboxes.js';
import type { PaymentsModuleOptions } from 'nestjs-payments';

const DAY = 86_400_000;
/** Nothing runs or is pruned unless the test says so. */
const WORKER = { background: false };

/** An application on the data, whose wall clock the test moves, and the ids that its handler was given. */
async function applicationOn(data: InboxData, webhook: PaymentsModuleOptions['webhook'] = {}) {
  let aheadMs = 0;
  const runtime = { ...systemRuntime, now: () => Date.now() + aheadMs };
  const ran: string[] = [];
  const book = ({ id }: { id: string }): void => void ran.push(id);
  const app = await startOn(data, { book }, { worker: WORKER, runtime, webhook });
  const inbox = inboxOf(app);
  return {
    app,
    inbox,
    ran,
    /** An event that is so old now. */
    event: (id: string, ageMs = 0) =>
      delivery({ id, timestamp: new Date(runtime.now() - ageMs).toISOString() }),
    /** Sends it, runs what is due, and returns the receipt. */
    send: async (sent: ReturnType<typeof delivery>) => {
      const { status, body } = await app.send(sent);
      await inbox.runDue({ forMs: 20_000 });
      return `${status} ${String(body['status'])}`;
    },
    /** Lets time pass and forgets what is to be forgotten. */
    pass: async (ms: number) => {
      aheadMs += ms;
      await data.pass(ms);
      while ((await inbox.prune()) > 0);
    },
  };
}

onEachDurableInbox((stage) => {
  it('SE-09 runs no handler for a captured delivery that is sent again at any time', async () => {
    const { app, inbox, ran, event, send, pass } = await applicationOn(await stage.data());
    await using _app = app;
    const captured = event('e-1', 60_000);
    expect(await send(captured)).toBe('200 stored');
    expect(ran).toEqual(['e-1']);
    for (const days of [1, 8, 20]) {
      await pass(days * DAY);
      expect(await send(captured)).toBe('200 duplicate');
    }
    await pass(DAY + 1000);
    // Both the fact that it was handled and its id are forgotten.
    expect(await inbox.get('e-1')).toBeUndefined();
    expect(await send(captured)).toBe('200 stale');
    expect(await inbox.get('e-1')).toMatchObject({ stale: true, deliveries: [] });
    for (const days of [8, 21]) {
      await pass(days * DAY);
      expect(await send(captured)).toBe('200 duplicate');
    }
    await pass(400 * DAY);
    expect(await inbox.get('e-1')).toBeUndefined();
    expect(await send(captured)).toBe('200 stale');
    expect(ran).toEqual(['e-1']);
  });

  it('SE-09 runs no handler for a captured delivery whose timestamp was in the future', async () => {
    const { app, inbox, ran, event, send, pass } = await applicationOn(await stage.data());
    await using _app = app;
    const captured = event('e-1', -20 * DAY);
    expect(await send(captured)).toBe('200 stored');
    // By its receipt alone it would be forgotten, and it is not stale yet.
    await pass(31 * DAY);
    expect(await send(captured)).toBe('200 duplicate');
    await pass(20 * DAY);
    expect(await inbox.get('e-1')).toBeUndefined();
    expect(await send(captured)).toBe('200 stale');
    expect(ran).toEqual(['e-1']);
  });

  it('SE-09 handles a delivery that is late but fresh, and a stale one after a redrive', async () => {
    const { app, inbox, ran, event, send } = await applicationOn(await stage.data());
    await using _app = app;
    expect(await send(event('late', 29 * DAY))).toBe('200 stored');
    expect(await send(event('old', 31 * DAY))).toBe('200 stale');
    expect(ran).toEqual(['late']);
    expect(await inbox.stats()).toMatchObject({ stale: { count: 1 } });
    expect(await inbox.redrive({ state: 'stale' })).toEqual({ events: 1, deliveries: 1 });
    await inbox.runDue({ forMs: 20_000 });
    expect(ran).toEqual(['late', 'old']);
    expect(await inbox.stats()).toMatchObject({ stale: { count: 0 } });
  });

  it('SE-09 applies the limit that webhook.maxAgeMs sets', async () => {
    const data = await stage.data();
    const { app, ran, event, send } = await applicationOn(data, { maxAgeMs: DAY });
    await using _app = app;
    expect(await send(event('old', DAY + 60_000))).toBe('200 stale');
    expect(await send(event('fresh', DAY - 60_000))).toBe('200 stored');
    expect(ran).toEqual(['fresh']);
  });

  it('SE-09 handles events of any age with webhook.maxAgeMs: false, replays after the retention too', async () => {
    const data = await stage.data();
    const { app, ran, event, send, pass } = await applicationOn(data, { maxAgeMs: false });
    await using _app = app;
    const captured = event('e-1', 300 * DAY);
    expect(await send(captured)).toBe('200 stored');
    await pass(31 * DAY);
    expect(await send(captured)).toBe('200 stored');
    expect(ran).toEqual(['e-1', 'e-1']);
  });
});
