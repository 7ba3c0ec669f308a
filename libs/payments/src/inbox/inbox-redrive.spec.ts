import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/fake.runtime.js';
import { HandlerRegistry } from '../events/handler.registry.js';
import { InboxRedrive } from './inbox-redrive.js';
import { MemoryStore } from './memory/memory.store.js';

const NONE = { events: 0, deliveries: 0 };

/** A redrive at a memory store, with handlers of all events and one of payouts. */
function bench() {
  const runtime = new FakeRuntime();
  const store = new MemoryStore({ maxEvents: 1e5, maxBytes: 1e9, retentionMs: 1e12 }, runtime);
  const registry = new HandlerRegistry();
  registry.add({ name: 'book', source: 'App.book', patterns: ['*'], invoke: async () => {} });
  registry.add({ name: 'mail', source: 'App.mail', patterns: ['*'], invoke: async () => {} });
  registry.add({
    name: 'settle',
    source: 'App.settle',
    patterns: ['payout.*'],
    invoke: async () => {},
  });
  const receive = (count: number, handlers: string[] = ['book', 'mail'], prefix = 'e') =>
    store.receive(
      Array.from({ length: count }, (_, index) => ({
        company: 'c',
        id: `${prefix}-${index}`,
        dedupeKey: `${prefix}-${index}`,
        eventType: 'transaction.completed',
        occurredAt: new Date(0),
        orderingKey: null,
        raw: Buffer.from('{}'),
        headers: {},
        stale: false,
        handlers,
      })),
    );
  /** Ends every due delivery of a handler. */
  const end = async (handler: string, state: 'done' | 'dead'): Promise<void> => {
    for (const lease of await store.claim({ handlers: [handler], limit: 1e5, leaseMs: 1000 })) {
      if (state === 'done') await store.complete(lease);
      else await store.fail(lease, { error: 'no', retryInMs: null });
    }
  };
  const counts = async () => {
    const { deliveries } = await store.stats();
    return deliveries.map(({ handler, state, count }) => `${handler} ${state} ${count}`).toSorted();
  };
  return { store, runtime, receive, end, counts, redrive: new InboxRedrive(store, registry) };
}

describe('InboxRedrive', () => {
  it('takes the dead ones unless told otherwise, page after page, and each once', async () => {
    const { receive, end, counts, redrive } = bench();
    await receive(1203);
    await end('book', 'dead');
    await end('mail', 'done');
    expect(await redrive.redrive({ dryRun: true })).toEqual({ events: 1203, deliveries: 1203 });
    expect(await counts()).toEqual(['book dead 1203', 'mail done 1203']);
    expect(await redrive.redrive({})).toEqual({ events: 1203, deliveries: 1203 });
    expect(await counts()).toEqual(['book pending 1203', 'mail done 1203']);
    expect(await redrive.redrive({})).toEqual(NONE);
  });

  it('keeps its rate from one page to the next', async () => {
    const { store, runtime, receive, end, redrive } = bench();
    await receive(1203, ['book']);
    await end('book', 'dead');
    await redrive.redrive({ ratePerSecond: 100 });
    const due = async () =>
      (await store.claim({ handlers: ['book'], limit: 1e5, leaseMs: 1e6 })).length;
    expect(await due()).toBe(1);
    for (let second = 0; second < 12; second += 1) {
      runtime.advance(1000);
      expect(await due()).toBe(100);
    }
    runtime.advance(1000);
    expect(await due()).toBe(2);
  });

  it('counts and changes nothing that runs, or is done and not forced', async () => {
    const { store, receive, end, redrive } = bench();
    await receive(3);
    await end('mail', 'done');
    await store.claim({ handlers: ['book'], limit: 2, leaseMs: 1000 });
    for (const dryRun of [true, false]) {
      const both = { handlers: ['book', 'mail'], dryRun };
      expect(await redrive.redrive(both)).toEqual({ events: 1, deliveries: 1 });
    }
    for (const dryRun of [true, false]) {
      const forced = { force: true, handler: 'mail', dryRun };
      expect(await redrive.redrive(forced)).toEqual({ events: 3, deliveries: 3 });
    }
  });

  it('runs a handler named only on events whose type it takes, those of nobody too', async () => {
    const { receive, counts, redrive } = bench();
    await receive(2, []);
    expect(await redrive.redrive({ handlers: ['settle'] })).toEqual(NONE);
    const query = { state: 'unhandled', handlers: ['settle', 'book'] } as const;
    expect(await redrive.redrive(query)).toEqual({ events: 2, deliveries: 2 });
    expect(await counts()).toEqual(['book pending 2']);
    expect(await redrive.redrive(query)).toEqual(NONE);
  });

  it('refuses a handler that does not exist and a rate that is none, before it touches anything', async () => {
    const { receive, end, counts, redrive } = bench();
    await receive(1, ['book']);
    await end('book', 'dead');
    await expect(redrive.redrive({ handlers: ['book', 'bock'] })).rejects.toThrow(
      new TypeError('No handler is named "bock". There are: book, mail, settle.'),
    );
    for (const ratePerSecond of [0, -1, Number.NaN]) {
      await expect(redrive.redrive({ ratePerSecond })).rejects.toThrow(TypeError);
    }
    expect(await counts()).toEqual(['book dead 1']);
  });

  it('skips the dead, or the pending where asked, and never what runs or is done', async () => {
    const { store, receive, end, counts, redrive } = bench();
    await receive(4);
    await end('mail', 'dead');
    await store.claim({ handlers: ['book'], limit: 1, leaseMs: 1000 });
    for (const state of ['running', 'done', 'skipped', 'unhandled'] as const) {
      expect(await redrive.skip({ state, dryRun: true })).toEqual(NONE);
      expect(await redrive.skip({ state })).toEqual(NONE);
    }
    expect(await redrive.skip({ dryRun: true })).toEqual({ events: 4, deliveries: 4 });
    expect(await redrive.skip({})).toEqual({ events: 4, deliveries: 4 });
    expect(await redrive.skip({ state: 'pending' })).toEqual({ events: 3, deliveries: 3 });
    expect(await counts()).toEqual(['book running 1', 'book skipped 3', 'mail skipped 4']);
  });
});
