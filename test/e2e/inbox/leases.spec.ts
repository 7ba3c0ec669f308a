import { afterEach, expect, it } from '@jest/globals';
import { fixed, none } from 'nestjs-payments';
import type { PaymentsRuntime } from 'nestjs-payments';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import { Gate } from '../../support/time/gate.js';
import { AT_ONCE, inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { MerchantProcess } from '../../support/inbox/merchant-process.js';
import { book, onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

const SHORT = { ...AT_ONCE, leaseMs: 1000 };

let running: MerchantProcess[] = [];
afterEach(async () => {
  await Promise.all(running.map((merchant) => merchant.kill()));
  running = [];
});

onEachDurableInbox((durable) => {
  it('IN-11 each of many deliveries runs once, in one of three applications', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }) => void ran.push(id);
    await using a = await startOn(data, { book: handle, mail: handle });
    await using b = await startOn(data, { book: handle, mail: handle });
    await using c = await startOn(data, { book: handle, mail: handle });
    const ids = Array.from({ length: 90 }, (_, index) => `e-${index}`);
    const responses = ids.map((id, index) => post([a, b, c][index % 3]!, id));
    expect(new Set(await Promise.all(responses))).toEqual(new Set([200]));
    const done = { book: 'done 1', mail: 'done 1' };
    for (const id of ids) await eventually(async () => expect(await states(a, id)).toEqual(done));
    expect(ran.toSorted()).toEqual([...ids, ...ids].toSorted());
  });

  it('IN-14 a handler that takes longer than the lease keeps its delivery', async () => {
    const data = await durable.data();
    const gate = new Gate();
    const handle: Handle = () => gate.pass();
    await using a = await startOn(data, { book: handle }, { worker: SHORT });
    await using b = await startOn(data, { book: handle }, { worker: SHORT });
    await post(a, 'long');
    await gate.arrival;
    const startedAt = performance.now();
    // More than three leases pass. In each, both processes look for dead workers.
    await eventually(() => expect(performance.now() - startedAt).toBeGreaterThan(3500));
    expect(await states(b, 'long')).toEqual({ book: 'running 1' });
    gate.open();
    await eventually(async () => expect(await states(a, 'long')).toEqual({ book: 'done 1' }));
    expect(gate.entered).toBe(1);
  });

  it('IN-30 an attempt that exceeds timeoutMs fails with handler_timeout, frees its slot, and is logged', async () => {
    const data = await durable.data();
    const signals: AbortSignal[] = [];
    const hangs: Handle = ({ id }, { signal, attempt }) => {
      signals.push(signal);
      return id === 'hangs' && attempt === 1 ? new Promise(() => {}) : undefined;
    };
    const worker = { retry: fixed([100]), concurrency: 1, timeoutMs: 300 };
    await using app = await startOn(data, { hangs }, { worker });
    await post(app, 'hangs');
    await post(app, 'waits');
    await eventually(async () => expect(await states(app, 'waits')).toEqual({ hangs: 'done 1' }));
    await eventually(async () => expect(await states(app, 'hangs')).toEqual({ hangs: 'done 2' }));
    expect(signals[0]!.reason).toMatchObject({ name: 'TimeoutError' });
    const { history } = (await inboxOf(app).get('hangs'))!.deliveries[0]!;
    expect(history).toMatchObject([
      { outcome: 'failed', error: expect.stringMatching(/handler_timeout/) },
      { outcome: 'done' },
    ]);
    await eventually(() => expect(app.log.matching(/Handler hangs still runs/)).toHaveLength(1));
  });

  it('IN-30 a commit that ends after handler_timeout is rolled back', async () => {
    const data = await durable.data();
    const rejected: unknown[] = [];
    const late: Handle = async ({ id }, context) => {
      // The handler ignores its signal.
      await new Promise((resolve) => setTimeout(resolve, 600));
      await book(data, context, id).catch((error: unknown) => rejected.push(error));
    };
    const worker = { retry: none, timeoutMs: 200 };
    await using app = await startOn(data, { late }, { worker });
    await post(app, 'late');
    await eventually(() => expect(rejected).toMatchObject([{ code: 'lease_lost' }]));
    expect(await states(app, 'late')).toEqual({ late: 'dead 1' });
    expect(await data.effects()).toEqual([]);
  });

  it('IN-12 IN-13 IN-14 a process with a blocked event loop loses its delivery, and its commit is rejected', async () => {
    const data = await durable.data();
    const start = async () => {
      const merchant = await MerchantProcess.start(data, { worker: SHORT });
      running.push(merchant);
      return merchant;
    };
    const blocked = await start();
    // The handler blocks the event loop for several leases, while the other process sends heartbeats.
    const other = await start();
    await blocked.send('paid', 'block');
    await blocked.reported('rejected paid lease_lost');
    await Promise.race([other.reported('ended paid'), blocked.reported('ended paid')]);
    expect(await data.effects()).toEqual(['paid']);
  });

  it('IN-16 deliveries of one transaction never run at once in two applications, others in parallel', async () => {
    const data = await durable.data();
    const inside = new Map<string, number>();
    let most = 0;
    const gate = new Gate();
    const handle: Handle = async ({ data: { transactionId } }, { handler }) => {
      const key = `${handler} ${String(transactionId)}`;
      const now = (inside.get(key) ?? 0) + 1;
      inside.set(key, now);
      most = Math.max(most, now);
      if (transactionId !== 'one') await gate.pass();
      else await new Promise((resolve) => setImmediate(resolve));
      inside.set(key, inside.get(key)! - 1);
    };
    await using a = await startOn(data, { book: handle, mail: handle });
    await using b = await startOn(data, { book: handle, mail: handle });
    const one = Array.from({ length: 12 }, (_, index) => `one ${index}`);
    const others = Array.from({ length: 6 }, (_, index) => `other ${index}`);
    await Promise.all([
      ...one.map((id, index) => post(index % 2 ? a : b, id, { transactionId: 'one' })),
      ...others.map((id, index) => post(index % 2 ? a : b, id, { transactionId: id })),
    ]);
    const done = { book: 'done 1', mail: 'done 1' };
    for (const id of one) await eventually(async () => expect(await states(a, id)).toEqual(done));
    // Both handlers of all six events run at the same time, until the test ends them.
    await eventually(() => expect(gate.inside).toBe(12));
    gate.open();
    for (const id of others)
      await eventually(async () => expect(await states(a, id)).toEqual(done));
    expect(most).toBe(1);
  });
});

onEachDurableInbox(
  (durable) => {
    it('IN-23 leases stay correct between applications whose clocks differ by 10 minutes', async () => {
      const data = await durable.data();
      const off = (ms: number): PaymentsRuntime => ({
        ...systemRuntime,
        now: () => Date.now() + ms,
      });
      const gate = new Gate();
      const handle: Handle = async ({ id }, context) => {
        await gate.pass();
        await book(data, context, id);
      };
      const options = { worker: SHORT };
      await using early = await startOn(
        data,
        { book: handle },
        { ...options, runtime: off(-600_000) },
      );
      await using late = await startOn(
        data,
        { book: handle },
        { ...options, runtime: off(600_000) },
      );
      const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
      // Each event is due at once for both applications, not 10 minutes later.
      await Promise.all(ids.map((id, index) => post(index % 2 ? early : late, id)));
      await eventually(() => expect(gate.inside).toBe(6));
      for (const app of [early, late]) {
        const event = (await inboxOf(app).get('a'))!;
        expect(Math.abs(event.receivedAt.getTime() - Date.now())).toBeLessThan(60_000);
        // resume() causes a claim, which finds nothing.
        await inboxOf(app).resume();
      }
      gate.open();
      await eventually(async () => expect(await data.effects()).toEqual(ids));
      for (const id of ids) {
        await eventually(async () => expect(await states(late, id)).toEqual({ book: 'done 1' }));
      }
      expect(gate.entered).toBe(6);
    });
  },
  ['postgres'],
);
