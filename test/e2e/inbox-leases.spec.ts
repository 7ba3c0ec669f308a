import { afterEach, expect, it } from '@jest/globals';
import { fixed, none } from 'nestjs-payments';
import type { PaymentsRuntime } from 'nestjs-payments';
import { systemRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import { Gate } from '../support/time/gate.js';
import { AT_ONCE, inboxOf, post, startOn, states } from '../support/inbox/inbox-application.js';
import type { Handle } from '../support/inbox/inbox-application.js';
import { MerchantProcess } from '../support/inbox/merchant-process.js';
import { book, onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import { eventually } from '../support/time/waiting.js';

const SHORT = { ...AT_ONCE, leaseMs: 1000 };

let running: MerchantProcess[] = [];
afterEach(async () => {
  await Promise.all(running.map((merchant) => merchant.kill()));
  running = [];
});

onEachDurableInbox((stage) => {
  it('IN-11 runs each of many deliveries once, in one of three applications', async () => {
    const data = await stage.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }) => void ran.push(id);
    await using a = await startOn(data, { book: handle, mail: handle });
    await using b = await startOn(data, { book: handle, mail: handle });
    await using c = await startOn(data, { book: handle, mail: handle });
    const ids = Array.from({ length: 90 }, (_, index) => `e-${index}`);
    const answers = ids.map((id, index) => post([a, b, c][index % 3]!, id));
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    const done = { book: 'done 1', mail: 'done 1' };
    for (const id of ids) await eventually(async () => expect(await states(a, id)).toEqual(done));
    expect(ran.toSorted()).toEqual([...ids, ...ids].toSorted());
  });

  it('IN-14 keeps a delivery of a handler that takes longer than its lease', async () => {
    const data = await stage.data();
    const gate = new Gate();
    const handle: Handle = () => gate.pass();
    await using a = await startOn(data, { book: handle }, { worker: SHORT });
    await using b = await startOn(data, { book: handle }, { worker: SHORT });
    await post(a, 'long');
    await gate.arrival;
    const startedAt = performance.now();
    // Several leases, in each of which both processes look for dead workers.
    await eventually(() => expect(performance.now() - startedAt).toBeGreaterThan(3500));
    expect(await states(b, 'long')).toEqual({ book: 'running 1' });
    gate.open();
    await eventually(async () => expect(await states(a, 'long')).toEqual({ book: 'done 1' }));
    expect(gate.entered).toBe(1);
  });

  it('IN-30 fails an attempt that takes longer than timeoutMs with handler_timeout, frees its place, and warns', async () => {
    const data = await stage.data();
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

  it('IN-30 rolls back a commit that ends after the attempt failed with handler_timeout', async () => {
    const data = await stage.data();
    const refused: unknown[] = [];
    const late: Handle = async ({ id }, context) => {
      // It ignores its signal.
      await new Promise((resolve) => setTimeout(resolve, 600));
      await book(data, context, id).catch((error: unknown) => refused.push(error));
    };
    const worker = { retry: none, timeoutMs: 200 };
    await using app = await startOn(data, { late }, { worker });
    await post(app, 'late');
    await eventually(() => expect(refused).toMatchObject([{ code: 'lease_lost' }]));
    expect(await states(app, 'late')).toEqual({ late: 'dead 1' });
    expect(await data.effects()).toEqual([]);
  });

  it('IN-12 IN-13 IN-14 takes over from a process whose event loop is blocked, and refuses its commit', async () => {
    const data = await stage.data();
    const start = async () => {
      const merchant = await MerchantProcess.start(data, { worker: SHORT });
      running.push(merchant);
      return merchant;
    };
    const blocked = await start();
    // Acknowledged before it runs: then it blocks for several leases, while the other process sends heartbeats.
    const other = await start();
    await blocked.send('paid', 'block');
    await blocked.told('refused paid lease_lost');
    await Promise.race([other.told('ended paid'), blocked.told('ended paid')]);
    expect(await data.effects()).toEqual(['paid']);
  }, 60_000);

  it('IN-16 never runs two deliveries of one transaction at once, in two applications, and others in parallel', async () => {
    const data = await stage.data();
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
    // Both handlers of all six, at the same time, until the test ends them.
    await eventually(() => expect(gate.inside).toBe(12));
    gate.open();
    for (const id of others)
      await eventually(async () => expect(await states(a, id)).toEqual(done));
    expect(most).toBe(1);
  });
});

onEachDurableInbox(
  (stage) => {
    it('IN-23 keeps leases right between applications whose clocks are 10 minutes off, either way', async () => {
      const data = await stage.data();
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
      // What either receives is due at once, to both: neither has it wait for 10 minutes.
      await Promise.all(ids.map((id, index) => post(index % 2 ? early : late, id)));
      await eventually(() => expect(gate.inside).toBe(6));
      for (const app of [early, late]) {
        const event = (await inboxOf(app).get('a'))!;
        expect(Math.abs(event.receivedAt.getTime() - Date.now())).toBeLessThan(60_000);
        // It claims, and finds nothing.
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
