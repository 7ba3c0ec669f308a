import { describe, expect, it } from '@jest/globals';
import { incoming } from '../../../../../test/store-contract/contract-fixtures.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { Observed } from '../../../../../test/support/telemetry/recording-observer.js';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { Observers } from '../../telemetry/observers.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { InboxRedrive } from './inbox-redrive.js';
import { memoryStore } from '../../stores/memory/memory-store.js';

const NONE = { events: 0, deliveries: 0 };

/** A redrive on a memory store, with handlers for all event types and a handler for payouts. */
function redriveHarness() {
  const runtime = new FakeRuntime();
  const store = memoryStore({ maxEvents: 1e5, maxBytes: 1e9 }, runtime);
  const registry = new HandlerRegistry();
  const add = (name: string, pattern: string) =>
    registry.add({
      name,
      source: `App.${name}`,
      patterns: [pattern],
      options: {},
      invoke: async () => {},
    });
  add('book', '*');
  add('mail', '*');
  add('settle', 'payout.*');
  const receive = (
    count: number,
    handlers: string[] = ['book', 'mail'],
    prefix = 'e',
    catalogVersion = 0,
  ) =>
    store.receive(
      Array.from({ length: count }, (_, index) =>
        incoming({ company: 'c', id: `${prefix}-${index}`, handlers, catalogVersion }),
      ),
    );
  const claim = (handler: string, limit = 1e5) =>
    store.claim({ workerId: 'w', wanted: [{ handler, limit }] });
  /** Settles every due delivery of a handler. */
  const end = async (handler: string, state: 'done' | 'dead'): Promise<void> => {
    for (const lease of await claim(handler)) {
      if (state === 'done') await store.complete(lease);
      else await store.fail(lease, { error: 'no', retryInMs: null });
    }
  };
  const counts = async () => {
    const { deliveries } = await store.stats();
    return deliveries.map(({ handler, state, count }) => `${handler} ${state} ${count}`).toSorted();
  };
  const observed = new Observed();
  const observers = new Observers([observed.observer], runtime);
  const redrive = new InboxRedrive(store, new HandlerCatalogCache(store, registry), observers);
  const redriven = () => observed.of('deliveriesRedriven');
  return { redriven, store, runtime, receive, claim, end, counts, redrive };
}

describe('InboxRedrive', () => {
  it('IN-20 redrive() by default selects each dead delivery exactly once, page by page', async () => {
    const { receive, end, counts, redrive } = redriveHarness();
    await receive(1203);
    await end('book', 'dead');
    await end('mail', 'done');
    expect(await redrive.redrive({ dryRun: true })).toEqual({ events: 1203, deliveries: 1203 });
    expect(await counts()).toEqual(['book dead 1203']);
    expect(await redrive.redrive({})).toEqual({ events: 1203, deliveries: 1203 });
    expect(await counts()).toEqual(['book pending 1203']);
    expect(await redrive.redrive({})).toEqual(NONE);
  });

  it('IN-20 redrive() ignores running deliveries, and ignores done deliveries without force', async () => {
    const { receive, claim, end, redrive } = redriveHarness();
    await receive(3);
    await end('mail', 'done');
    await claim('book', 2);
    for (const dryRun of [true, false]) {
      const both = { handlers: ['book', 'mail'], dryRun };
      expect(await redrive.redrive(both)).toEqual({ events: 1, deliveries: 1 });
    }
    for (const dryRun of [true, false]) {
      const forced = { force: true, handler: 'mail', dryRun };
      expect(await redrive.redrive(forced)).toEqual({ events: 3, deliveries: 3 });
    }
  });

  it('redrive() with an error runs only deliveries that failed with this error, even if the query names handlers', async () => {
    const { receive, end, counts, redrive } = redriveHarness();
    await receive(2);
    await end('book', 'dead');
    await end('mail', 'done');
    const query = { handlers: ['book', 'mail', 'settle'], force: true };
    expect(await redrive.redrive({ ...query, error: 'yes' })).toEqual(NONE);
    expect(await redrive.redrive({ error: 'yes' })).toEqual(NONE);
    for (const dryRun of [true, false]) {
      const group = { ...query, error: 'no', dryRun };
      expect(await redrive.redrive(group)).toEqual({ events: 2, deliveries: 2 });
    }
    expect(await counts()).toEqual(['book pending 2']);
  });

  it('IN-20 redrive() runs a named handler only on events whose type the handler takes, including unhandled events', async () => {
    const { receive, counts, redrive } = redriveHarness();
    await receive(2, []);
    expect(await redrive.redrive({ handlers: ['settle'] })).toEqual(NONE);
    const query = { state: 'unhandled', handlers: ['settle', 'book'] } as const;
    expect(await redrive.redrive(query)).toEqual({ events: 2, deliveries: 2 });
    expect(await counts()).toEqual(['book pending 2']);
    expect(await redrive.redrive(query)).toEqual(NONE);
  });

  it('IN-32 redrive() accepts a handler that only another process has registered', async () => {
    const { store, receive, counts, redrive } = redriveHarness();
    await store.register({
      id: 'other',
      leaseMs: 1000,
      handlers: [{ name: 'theirs', patterns: ['transaction.*'] }],
    });
    await receive(2, []);
    // The store rejects events with an outdated version of the catalog.
    expect(await counts()).toEqual([]);
    await receive(2, [], 'e', 1);
    expect(await redrive.redrive({ state: 'unhandled', handlers: ['theirs'] })).toEqual({
      events: 2,
      deliveries: 2,
    });
    expect(await counts()).toEqual(['theirs pending 2']);
  });

  it('TE-01 observers get a report of what redrive() changed, and the report names the handler if the query names exactly one known handler', async () => {
    const { receive, end, redrive, redriven } = redriveHarness();
    await receive(2);
    await end('book', 'dead');
    await end('mail', 'dead');
    for (const query of [{ dryRun: true }, { handler: 'gone' }, { company: 'other' }]) {
      await redrive.redrive(query);
    }
    expect(redriven()).toEqual([]);
    await redrive.redrive({ company: 'c', handlers: ['book'] });
    await redrive.redrive({ handler: 'mail', ids: ['e-0'] });
    await redrive.redrive({ handlers: ['book', 'mail'], handler: 'mail' });
    expect(redriven()).toEqual([
      { company: 'c', handler: 'book', events: 2, deliveries: 2 },
      { company: null, handler: 'mail', events: 1, deliveries: 1 },
      { company: null, handler: null, events: 2, deliveries: 4 },
    ]);
  });

  it('TE-01 observers get a report of the deliveries that redrive() changed before the store failed', async () => {
    const { store, receive, end, redrive, redriven } = redriveHarness();
    await receive(150, ['book']);
    await end('book', 'dead');
    const list = store.list.bind(store);
    store.list = (query) =>
      query.after === null ? list(query) : Promise.reject(new Error('down'));
    await expect(redrive.redrive({ handler: 'book' })).rejects.toThrow('down');
    expect(redriven()).toEqual([{ company: null, handler: 'book', events: 100, deliveries: 100 }]);
  });

  it('redrive() rejects an unknown handler, and changes nothing', async () => {
    const { receive, end, counts, redrive } = redriveHarness();
    await receive(1, ['book']);
    await end('book', 'dead');
    await expect(redrive.redrive({ handlers: ['book', 'bock'] })).rejects.toThrow(
      new TypeError('No handler is named "bock". Known handlers: book, mail, settle.'),
    );
    expect(await counts()).toEqual(['book dead 1']);
  });

  it('skip() skips dead deliveries by default, pending deliveries if selected, and never running or done deliveries', async () => {
    const { store, receive, claim, end, counts, redrive } = redriveHarness();
    await receive(4);
    await end('mail', 'dead');
    await claim('book', 1);
    for (const state of ['running', 'done', 'skipped', 'unhandled'] as const) {
      expect(await redrive.skip({ state, dryRun: true })).toEqual(NONE);
      expect(await redrive.skip({ state })).toEqual(NONE);
    }
    expect(await redrive.skip({ dryRun: true })).toEqual({ events: 4, deliveries: 4 });
    expect(await redrive.skip({})).toEqual({ events: 4, deliveries: 4 });
    expect(await redrive.skip({ state: 'pending' })).toEqual({ events: 3, deliveries: 3 });
    expect(await counts()).toEqual(['book running 1']);
    const page = { filter: { state: 'skipped' }, order: 'oldest', limit: 9, after: null } as const;
    const { events } = await store.list(page);
    const skipped = events.flatMap(({ deliveries }) => deliveries);
    expect(skipped.filter(({ state }) => state === 'skipped')).toHaveLength(7);
  });

  it('IN-32 skipRemoved() skips nothing more after a process has registered the handler again', async () => {
    const { store, receive, counts, redrive } = redriveHarness();
    await receive(150, ['book']);
    const skip = store.skip.bind(store);
    store.skip = async (selections) => {
      const skipped = await skip(selections);
      const handlers = [{ name: 'book', patterns: ['*'] }];
      const { version } = await store.register({ id: 'w', handlers, leaseMs: 1000 });
      await receive(1, ['book'], 'later', version);
      return skipped;
    };
    expect(await redrive.skipRemoved('book')).toBe(100);
    expect(await counts()).toEqual(['book pending 51']);
  });
});
