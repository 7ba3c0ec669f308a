import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  FakeRuntime,
  turns as eventLoopTurns,
  until,
} from '../../../../test/support/fake.runtime.js';
import { HandlerRegistry } from '../events/handler-registry.js';
import { DeliveryReceiver } from './delivery-receiver.js';
import { HandlerCatalogCache } from './handler-catalog-cache.js';
import type { ClaimedDelivery, InboxStore } from './inbox-store.js';
import type { InboxWorker } from './inbox-worker.js';
import { MemoryStore } from './memory/memory-store.js';
import { resolveReceiveOptions } from './receive-options.js';
import type { ReceiveOptions } from './receive-options.js';
import { Settlements } from './settlements.js';
import type { SettlementWatch } from './settlements.js';
import { StoredBodies } from './body-codec.js';
import { VerifiedDelivery } from './verified-delivery.js';

let log: string[] = [];
beforeEach(() => {
  log = [];
  for (const level of ['warn', 'error', 'log'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => {
      log.push(`${level}: ${String(line)}`);
    });
  }
});
afterEach(() => void jest.restoreAllMocks());

const turns = () => eventLoopTurns(10);

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

/** A worker with one handler that runs what it is assigned, and what it finds when it is woken. */
class TestWorker {
  readonly ran: string[] = [];
  working = true;
  places = true;
  handle: (id: string) => unknown = () => {};

  constructor(
    private readonly store: InboxStore,
    private readonly settlements: Settlements,
  ) {}

  reserve(handlers: readonly string[]) {
    if (!this.places) return null;
    const start = (claimed: readonly ClaimedDelivery[] | null): void => this.#run(claimed ?? []);
    return { worker: 'w', handlers, start };
  }

  wake(): void {
    void this.claim();
  }

  async claim(): Promise<void> {
    const wanted = [{ handler: 'h', limit: 10 }];
    this.#run(await this.store.claim({ worker: 'w', wanted }));
  }

  #run(claimed: readonly ClaimedDelivery[]): void {
    for (const delivery of claimed) void this.#attempt(delivery);
  }

  async #attempt(delivery: ClaimedDelivery): Promise<void> {
    this.ran.push(delivery.id);
    let failed = false;
    try {
      await this.handle(delivery.id);
    } catch {
      failed = true;
    }
    if (failed) await this.store.fail(delivery, { error: 'no', retryInMs: 60_000 });
    else await this.store.complete(delivery);
    this.settlements.report(delivery, failed ? 'failed' : 'succeeded');
  }
}

const NO = (): never => {
  throw new Error('no');
};

/** A process with one handler of `t` and `transaction.*`, and a memory inbox. */
function receiver(options: ReceiveOptions = {}, maxAgeMs = Infinity) {
  const runtime = new FakeRuntime();
  const limits = { maxEvents: 1000, maxBytes: 1e6, retentionMs: 1e9 };
  const store: InboxStore = new MemoryStore(limits, runtime);
  const settlements = new CountedSettlements();
  const worker = new TestWorker(store, settlements);
  const registry = new HandlerRegistry();
  const patterns = ['t', 'transaction.*'];
  registry.add({ name: 'h', source: 'h', patterns, options: {}, invoke: async () => {} });
  const catalog = new HandlerCatalogCache(store, registry);
  const bodies = new StoredBodies(null, runtime);
  const asWorker = worker as unknown as InboxWorker;
  const made = new DeliveryReceiver(
    store,
    resolveReceiveOptions(options),
    maxAgeMs,
    runtime,
    catalog,
    asWorker,
    settlements,
    bodies,
  );
  const receive = (
    id: string,
    data: Record<string, unknown> = {},
    { lateMs = 0, ageMs = 1000, eventType = 't', company = 'c' } = {},
  ) => {
    const timestamp = new Date(runtime.now() - ageMs).toISOString();
    const event = { id, eventType, timestamp, data, metadata: {} };
    const raw = Buffer.from(JSON.stringify({ ...event, timestamp: '' }));
    return made.receive(new VerifiedDelivery(company, event, raw, runtime.monotonic() - lateMs));
  };
  const find = async (id: string) => (await store.find('c', id))!;
  return { runtime, store, worker, settlements, receive, made, find };
}

describe('DeliveryReceiver', () => {
  it('rejects, and does not throw, if it is given no delivery', async () => {
    const { made } = receiver();
    const nothing = undefined as unknown as VerifiedDelivery;
    await expect(made.receive(nothing)).rejects.toThrow(TypeError);
  });

  it('starts a handler that fails at once only once for one delivery', async () => {
    const { worker, receive, settlements } = receiver();
    worker.handle = NO;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(worker.ran).toEqual(['a']);
    expect(settlements.open).toBe(0);
  });

  it('starts it once even if its attempt ends before the receipt is read', async () => {
    const { store, worker, receive } = receiver();
    worker.handle = NO;
    worker.places = false;
    const storeReceive = store.receive.bind(store);
    store.receive = async (events) => {
      const receipts = await storeReceive(events);
      await worker.claim();
      await turns();
      expect(worker.ran).toEqual(['a']);
      return receipts;
    };
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(worker.ran).toEqual(['a']);
  });

  it('WH-26 stops waiting for a handler when its sender is answered at the deadline', async () => {
    const { runtime, worker, settlements, receive, find } = receiver({ deadlineMs: 1000 });
    let end = () => {};
    worker.handle = () => new Promise<void>((resolve) => (end = resolve));
    for (let copy = 0; copy < 3; copy += 1) {
      const answer = receive('a');
      answer.catch(() => {});
      await turns();
      expect(settlements.open).toBe(1);
      runtime.advance(1000);
      await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
      await turns();
      // The handler still runs, and keeps no body of a copy.
      expect(settlements.open).toBe(0);
    }
    end();
    await turns();
    expect((await find('a')).deliveries[0]!.state).toBe('done');
    expect(worker.ran).toEqual(['a']);
  });

  it('waits for no handler of an event that was stored only after its sender was answered', async () => {
    const { runtime, store, worker, settlements, receive } = receiver({ deadlineMs: 1000 });
    worker.handle = () => new Promise<void>(() => {});
    const storeReceive = store.receive.bind(store);
    const stored = Promise.withResolvers<void>();
    store.receive = async (events) => {
      await stored.promise;
      return storeReceive(events);
    };
    const answer = receive('a');
    answer.catch(() => {});
    runtime.advance(1000);
    await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
    expect(settlements.open).toBe(1);
    stored.resolve();
    await until(() => worker.ran.length > 0);
    await turns();
    expect(settlements.open).toBe(0);
  });

  it('WH-23 waits for the handlers of the first event if a copy has another id', async () => {
    const { worker, settlements, receive } = receiver({ oncePerTransaction: ['t'] });
    let end = () => {};
    worker.handle = () => new Promise<void>((resolve) => (end = resolve));
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

  it('WH-22 runs the handler that failed again for a copy, and no other', async () => {
    const { worker, receive } = receiver();
    worker.handle = NO;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    worker.handle = () => {};
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(worker.ran).toEqual(['a', 'a']);
  });

  it('WH-22 starts nothing again that failed while the copy was looked up', async () => {
    const { store, worker, receive } = receiver();
    const { promise, reject } = Promise.withResolvers<void>();
    worker.handle = () => promise;
    const find = store.find.bind(store);
    store.find = async (company, id) => {
      const stored = await find(company, id);
      await until(() => worker.ran.length > 0);
      reject(new Error('meanwhile'));
      await turns();
      return stored;
    };
    const answers = await Promise.allSettled([receive('a'), receive('a')]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ reason: { code: 'handlers_failed' } });
    }
    await turns();
    expect(worker.ran).toEqual(['a']);
  });

  it('counts the deadline from the arrival, also for a body that arrived slowly', async () => {
    const { runtime, worker, receive } = receiver({ deadlineMs: 1000 });
    worker.handle = () => new Promise<void>(() => {});
    const answer = receive('a', {}, { lateMs: 400 });
    answer.catch(() => {});
    await turns();
    let answered = false;
    answer.catch(() => (answered = true));
    runtime.advance(599);
    await turns();
    expect(answered).toBe(false);
    runtime.advance(1);
    await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
  });

  it('leaves no timer behind once it has answered', async () => {
    const { runtime, worker, receive } = receiver();
    await receive('a');
    worker.handle = NO;
    await expect(receive('b')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(runtime.pending).toBe(0);
  });

  it('refuses a delivery to memory while nothing runs', async () => {
    const { worker, receive, store } = receiver();
    worker.working = false;
    await expect(receive('a')).rejects.toMatchObject({ code: 'inbox_unavailable', status: 503 });
    expect(await store.find('c', 'a')).toBeUndefined();
  });

  describe('oncePerTransaction', () => {
    const COMPLETED = { eventType: 'transaction.completed' };
    const repeats = () => log.filter((line) => line.includes('has the transaction of'));

    it('WH-23 makes the second completed event of a transaction a duplicate, noted and logged', async () => {
      const { worker, receive, find, store } = receiver();
      expect(await receive('a', { transactionId: 'T' }, COMPLETED)).toMatchObject({
        status: 'handled',
      });
      expect(await receive('b', { transactionId: 'T' }, COMPLETED)).toEqual({
        status: 'duplicate',
        id: 'a',
      });
      expect(worker.ran).toEqual(['a']);
      expect((await find('a')).repeats.map(({ id }) => id)).toEqual(['b']);
      expect(await store.find('c', 'b')).toBeUndefined();
      expect(repeats()).toHaveLength(1);
      expect(repeats()[0]).toMatch(
        /^warn: Event b \(company c\) of type "transaction\.completed" .* event a, .*was not handled/,
      );
    });

    it('WH-23 logs it once a minute per company and type, with the number since', async () => {
      const { receive, runtime } = receiver();
      const send = (id: string, company = 'c') =>
        receive(id, { transactionId: 'T' }, { ...COMPLETED, company });
      for (const id of ['a', 'b', 'd', 'e']) await send(id);
      expect(repeats()).toHaveLength(1);
      for (const id of ['a', 'b']) await send(id, 'other');
      expect(repeats()).toHaveLength(2);
      runtime.advance(60_000);
      await send('f');
      expect(repeats()).toHaveLength(3);
      expect(repeats()[2]).toContain('2 more');
    });

    it('WH-23 runs every event of other types, and of other transactions', async () => {
      const { worker, receive } = receiver();
      const updated = { eventType: 'transaction.updated' };
      for (const id of ['a', 'b', 'd']) await receive(id, { transactionId: 'T' }, updated);
      await receive('e', { transactionId: 'T' }, COMPLETED);
      await receive('f', { transactionId: 'U' }, COMPLETED);
      await receive('g', {}, COMPLETED);
      await receive('h', {}, COMPLETED);
      await receive('i', { transactionId: '' }, COMPLETED);
      await receive('j', { transactionId: '' }, COMPLETED);
      expect(worker.ran).toEqual(['a', 'b', 'd', 'e', 'f', 'g', 'h', 'i', 'j']);
      expect(repeats()).toEqual([]);
    });

    it('WH-15 runs the event of another company with the same transaction', async () => {
      const { worker, receive } = receiver();
      await receive('a', { transactionId: 'T' }, COMPLETED);
      await receive('b', { transactionId: 'T' }, { ...COMPLETED, company: 'other' });
      expect(worker.ran).toEqual(['a', 'b']);
    });

    it('WH-23 does not take a stale event for the first of its transaction', async () => {
      const { worker, receive } = receiver({}, 60_000);
      const stale = { ...COMPLETED, ageMs: 60_001 };
      expect(await receive('a', { transactionId: 'T' }, stale)).toMatchObject({ status: 'stale' });
      expect(await receive('b', { transactionId: 'T' }, COMPLETED)).toEqual({
        status: 'handled',
        id: 'b',
      });
      expect(worker.ran).toEqual(['b']);
    });
  });
});
