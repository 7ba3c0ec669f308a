import { afterEach, expect, it } from '@jest/globals';
import { Gate } from '../../support/time/gate.js';
import { AT_ONCE, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { MerchantProcess } from '../../support/inbox/merchant-process.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
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

  it('IN-16 two applications never run a handler for one transaction at the same time, and handle other transactions in parallel', async () => {
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

  // The chaos test covers blocked event loops of processes that use SQLite.
  if (durable.kind === 'sqlite') return;

  it('IN-12 IN-13 IN-14 a process with a blocked event loop loses its lease, and its commit is rejected', async () => {
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
});
