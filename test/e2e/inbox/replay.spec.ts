import { expect, it } from '@jest/globals';
import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { inboxOf, startOn } from '../../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import type { InboxData } from '../../support/inbox/durable-inboxes.js';
import type { PaymentsModuleOptions } from 'nestjs-payments';

const DAY = 86_400_000;
/** Without a background worker, deliveries run and events are pruned only when the test calls runDue() and prune(). */
const WORKER = { background: false };

/** An application whose wall clock the test can advance, and the ids of the events that its handler got. */
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
    /** An event whose timestamp is `ageMs` ago. */
    event: (id: string, ageMs = 0) =>
      webhookRequest({ id, timestamp: new Date(runtime.now() - ageMs).toISOString() }),
    /** Sends the event, runs due deliveries, and returns the status code and the receipt. */
    send: async (sent: ReturnType<typeof webhookRequest>) => {
      const { status, body } = await app.send(sent);
      await inbox.runDue({ forMs: 20_000 });
      return `${status} ${String(body['status'])}`;
    },
    /** Advances the clocks and prunes all old events. */
    pass: async (ms: number) => {
      aheadMs += ms;
      await data.pass(ms);
      while ((await inbox.prune()) > 0);
    },
  };
}

onEachDurableInbox((durable) => {
  it('SE-09 a captured webhook request that is sent again at any time runs no handler', async () => {
    const { app, inbox, ran, event, send, pass } = await applicationOn(await durable.data());
    await using _app = app;
    const captured = event('e-1', 60_000);
    expect(await send(captured)).toBe('200 stored');
    expect(ran).toEqual(['e-1']);
    for (const days of [1, 8, 20]) {
      await pass(days * DAY);
      expect(await send(captured)).toBe('200 duplicate');
    }
    await pass(DAY + 1000);
    // The event and its tombstone were deleted.
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

  it('SE-09 a captured webhook request with a timestamp in the future runs no handler when sent again', async () => {
    const { app, inbox, ran, event, send, pass } = await applicationOn(await durable.data());
    await using _app = app;
    const captured = event('e-1', -20 * DAY);
    expect(await send(captured)).toBe('200 stored');
    // If only the time of receipt counted, the id would be deleted now, before a copy becomes stale.
    await pass(31 * DAY);
    expect(await send(captured)).toBe('200 duplicate');
    await pass(20 * DAY);
    expect(await inbox.get('e-1')).toBeUndefined();
    expect(await send(captured)).toBe('200 stale');
    expect(ran).toEqual(['e-1']);
  });

  it('SE-09 with webhook.maxAgeMs: false, events of any age are handled, including replays after the retention', async () => {
    const data = await durable.data();
    const { app, ran, event, send, pass } = await applicationOn(data, { maxAgeMs: false });
    await using _app = app;
    const captured = event('e-1', 300 * DAY);
    expect(await send(captured)).toBe('200 stored');
    await pass(31 * DAY);
    expect(await send(captured)).toBe('200 stored');
    expect(ran).toEqual(['e-1', 'e-1']);
  });
});
