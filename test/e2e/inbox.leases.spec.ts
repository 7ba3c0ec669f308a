import { afterEach, expect, it } from '@jest/globals';
import type { PaymentsRuntime } from 'nestjs-payments';
import { systemRuntime } from '../../libs/payments/dist/payments.runtime.js';
import { Gate } from '../support/gate.js';
import { inboxOf, post, startOn, states } from '../support/inbox.application.js';
import type { Handle } from '../support/inbox.application.js';
import { MerchantProcess } from '../support/inbox.process.js';
import { book, onEachDurableInbox } from '../support/inbox.stages.js';
import { eventually } from '../support/eventually.js';

const SHORT = { leaseMs: 1000, firstRetryMs: 1, maxRetryMs: 1 };

let running: MerchantProcess[] = [];
afterEach(async () => {
  await Promise.all(running.map((merchant) => merchant.kill()));
  running = [];
});

onEachDurableInbox((stage) => {
  it('11: runs each of many deliveries once, whichever of three applications claims it', async () => {
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

  it('14: keeps a delivery of a handler that takes longer than its lease', async () => {
    const data = await stage.data();
    const gate = new Gate();
    const handle: Handle = () => gate.pass();
    const worker = { ...SHORT, leaseMs: 3000 };
    await using a = await startOn(data, { book: handle }, { worker });
    await using b = await startOn(data, { book: handle }, { worker });
    await post(a, 'long');
    await gate.arrival;
    const leaseEnd = async () => (await inboxOf(b).get('long'))!.deliveries[0]!.dueAt!.getTime();
    const first = await leaseEnd();
    // Prolonged until well after the time it was claimed for.
    await eventually(async () => expect(await leaseEnd()).toBeGreaterThan(first + 3500));
    gate.open();
    await eventually(async () => expect(await states(a, 'long')).toEqual({ book: 'done 1' }));
    expect(gate.entered).toBe(1);
  });

  it('14: takes over from a process whose event loop is blocked, and refuses its commit', async () => {
    const data = await stage.data();
    const start = async () => {
      const merchant = await MerchantProcess.start(data, { worker: SHORT });
      running.push(merchant);
      return merchant;
    };
    const blocked = await start();
    // Acknowledged before it is run: then it blocks for one and a half leases.
    await blocked.send('paid', 'block');
    const other = await start();
    await blocked.told('refused paid lease_lost');
    await Promise.race([other.told('ended paid'), blocked.told('ended paid')]);
    expect(await data.effects()).toEqual(['paid']);
  }, 60_000);

  it('16: never runs two deliveries of one transaction at once, in two applications, and others in parallel', async () => {
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
    // Both handlers of all six, at the same time, while nobody lets them go.
    await eventually(() => expect(gate.inside).toBe(12));
    gate.open();
    for (const id of others)
      await eventually(async () => expect(await states(a, id)).toEqual(done));
    expect(most).toBe(1);
  });
});

onEachDurableInbox(
  (stage) => {
    it('23: keeps leases right between applications whose clocks are 10 minutes off, either way', async () => {
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
      const options = { worker: { ...SHORT, leaseMs: 60_000 } };
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
        const leaseEnd = event.deliveries[0]!.dueAt!.getTime();
        expect(Math.abs(leaseEnd - 60_000 - Date.now())).toBeLessThan(30_000);
        // It looks, and finds nothing that it may take over.
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
