import { describe, expect, it } from '@jest/globals';
import { until } from '../../../../test/support/fake.runtime.js';
import { turns, WorkerBench } from '../../../../test/support/worker.bench.js';
import { DeliveryReceiver } from './delivery-receiver.js';
import { resolveReceiveOptions } from './receive-options.js';
import { Settlements } from './settlements.js';
import type { SettlementWatch } from './settlements.js';
import { StoredBodies } from './stored-bodies.js';
import { VerifiedDelivery } from './verified-delivery.js';

/** Settlements that know how many watches are open. */
class CountedSettlements extends Settlements {
  open = 0;

  override watch(company: string, id: string): SettlementWatch {
    const watch = super.watch(company, id);
    const { end } = watch;
    let ended = false;
    this.open += 1;
    return Object.assign(watch, {
      end: () => {
        if (!ended) this.open -= 1;
        ended = true;
        end();
      },
    });
  }
}

function receiver(options: Parameters<typeof resolveReceiveOptions>[0] = {}) {
  const settlements = new CountedSettlements();
  const bench = new WorkerBench({ maxAttempts: 3 }, settlements);
  const { store, runtime, registry, worker } = bench;
  const made = new DeliveryReceiver(
    store,
    resolveReceiveOptions(options),
    Infinity,
    runtime,
    registry,
    worker,
    settlements,
    new StoredBodies(null, runtime),
  );
  worker.start();
  const receive = (id: string, data: Record<string, unknown> = {}, agoMs = 0) => {
    const event = { id, eventType: 't', timestamp: new Date(0).toISOString(), data, metadata: {} };
    const raw = Buffer.from(JSON.stringify(event));
    return made.receive(new VerifiedDelivery('c', event, raw, runtime.monotonic() - agoMs));
  };
  return { bench, settlements, receive, made };
}

describe('DeliveryReceiver', () => {
  it('rejects, and does not throw, where it is given no delivery', async () => {
    const { made } = receiver();
    const nothing = undefined as unknown as VerifiedDelivery;
    await expect(made.receive(nothing)).rejects.toThrow(TypeError);
  });

  it('begins a handler that fails at once only once for one delivery', async () => {
    const { bench, receive, settlements } = receiver();
    bench.handle = () => {
      throw new Error('at once');
    };
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    expect(bench.ran).toHaveLength(1);
    expect(settlements.open).toBe(0);
  });

  it('begins it once even where its attempt ends before the receipt is read', async () => {
    const { bench, receive } = receiver();
    bench.handle = () => {
      throw new Error('at once');
    };
    const storeReceive = bench.store.receive.bind(bench.store);
    bench.store.receive = async (events) => {
      const receipts = await storeReceive(events);
      await until(() => bench.ran.length > 0);
      await turns();
      return receipts;
    };
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    expect(bench.ran).toHaveLength(1);
  });

  it('waits no longer for a handler once its sender was answered at the deadline', async () => {
    const { bench, settlements, receive } = receiver({ deadlineMs: 1000 });
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    for (let copy = 0; copy < 3; copy += 1) {
      const answer = receive('a');
      answer.catch(() => {});
      await turns();
      expect(settlements.open).toBe(1);
      bench.runtime.advance(1000);
      await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
      await turns();
      // The handler hangs on, and holds no body of a copy.
      expect(settlements.open).toBe(0);
    }
    end();
    await turns();
    expect(await bench.isDone('a')).toBe(true);
    expect(bench.ran).toHaveLength(1);
  });

  it('waits for no handler of an event that was stored only when its sender had been answered', async () => {
    const { bench, settlements, receive } = receiver({ deadlineMs: 1000 });
    bench.handle = () => new Promise<void>(() => {});
    const storeReceive = bench.store.receive.bind(bench.store);
    const stored = Promise.withResolvers<void>();
    bench.store.receive = async (events) => {
      await stored.promise;
      return storeReceive(events);
    };
    const answer = receive('a');
    answer.catch(() => {});
    bench.runtime.advance(1000);
    await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
    expect(settlements.open).toBe(1);
    stored.resolve();
    await until(() => bench.ran.length > 0);
    await turns();
    expect(settlements.open).toBe(0);
  });

  it('waits for the handlers of the original where a copy comes under another id', async () => {
    const { bench, settlements, receive } = receiver({ dedupeBy: 'transaction' });
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    const original = receive('a', { transactionId: 't-1' });
    await turns();
    let answered = false;
    const copy = receive('b', { transactionId: 't-1' }).then((receipt) => {
      answered = true;
      return receipt;
    });
    await turns();
    expect(answered).toBe(false);
    end();
    expect(await copy).toEqual({ status: 'duplicate', id: 'a' });
    expect(await original).toEqual({ status: 'handled', id: 'a' });
    expect(settlements.open).toBe(0);
  });

  it('begins nothing again that failed while it looked', async () => {
    const { bench, receive } = receiver();
    const { promise, reject } = Promise.withResolvers<void>();
    bench.handle = () => promise;
    const find = bench.store.find.bind(bench.store);
    bench.store.find = async (company, id) => {
      const stored = await find(company, id);
      await until(() => bench.ran.length > 0);
      reject(new Error('meanwhile'));
      await turns();
      return stored;
    };
    const answers = await Promise.allSettled([receive('a'), receive('a')]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ reason: { code: 'handlers_failed' } });
    }
    expect(bench.ran).toHaveLength(1);
  });

  it('counts the deadline from the arrival, also of what was long in coming', async () => {
    const { bench, receive } = receiver({ deadlineMs: 1000 });
    bench.handle = () => new Promise<void>(() => {});
    const answer = receive('a', {}, 400);
    answer.catch(() => {});
    await turns();
    let answered = false;
    answer.catch(() => (answered = true));
    bench.runtime.advance(599);
    await turns();
    expect(answered).toBe(false);
    bench.runtime.advance(1);
    await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
  });
});
