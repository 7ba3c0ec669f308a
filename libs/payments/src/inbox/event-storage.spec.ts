import { describe, expect, it } from '@jest/globals';
import { HandlerRegistry } from '../events/handler-registry.js';
import { FakeRuntime } from '../../../../test/support/fake.runtime.js';
import { PaymentsError } from '../payments.errors.js';
import { EventStorage } from './event-storage.js';
import { HandlerCatalogCache } from './handler-catalog-cache.js';
import type {
  ClaimedDelivery,
  HandlerCatalog,
  IncomingEvent,
  InboxStore,
  StoreReceipt,
} from './inbox-store.js';
import type { InboxWorker } from './inbox-worker.js';
import { StoredBodies } from './stored-bodies.js';

const BODY = Buffer.from('{}');
const FACTS = {
  company: 'c',
  id: 'e',
  eventType: 'paid',
  occurredAt: new Date(0),
  orderingKey: null,
  onceKey: null,
  raw: BODY,
  headers: {},
  stale: false,
};
const STORED: StoreReceipt = { outcome: 'stored', id: 'e', claimed: [], pending: false };
const OUTDATED: StoreReceipt = { ...STORED, outcome: 'outdated' };
const CLAIMED = [{ handler: 'own' }] as unknown as readonly ClaimedDelivery[];

type Answer = StoreReceipt | Error;

/** A process with the handler `own`, whose store answers receives in turn; the last answer repeats. */
function bench(...answers: [Answer, ...Answer[]]) {
  const received: IncomingEvent[] = [];
  const started: (readonly ClaimedDelivery[] | null)[] = [];
  const woken: unknown[] = [];
  const state = {
    places: true,
    catalogs: [] as HandlerCatalog[],
    loads: 0,
  };
  const store = {
    receive: async ([event]: readonly IncomingEvent[]) => {
      received.push(event!);
      const answer = answers.length > 1 ? answers.shift()! : answers[0];
      if (answer instanceof Error) throw answer;
      return [answer];
    },
    catalog: async () => {
      state.loads += 1;
      return state.catalogs.length > 1 ? state.catalogs.shift()! : state.catalogs[0]!;
    },
  } as unknown as InboxStore;
  const worker = {
    reserve: (handlers: readonly string[]) =>
      state.places
        ? {
            worker: 'w',
            handlers,
            start: (claimed: typeof CLAIMED | null) => started.push(claimed),
          }
        : null,
    wake: (handlers: unknown) => woken.push(handlers),
  } as unknown as InboxWorker;
  const registry = new HandlerRegistry();
  registry.add({
    name: 'own',
    source: 'own',
    patterns: ['paid'],
    options: {},
    invoke: async () => {},
  });
  const catalog = new HandlerCatalogCache(store, registry);
  const bodies = new StoredBodies(null, new FakeRuntime());
  const storage = new EventStorage(store, registry, catalog, worker, bodies);
  return { storage, received, started, woken, state };
}

function catalogOf(version: number, ...names: string[]): HandlerCatalog {
  const at = new Date(0);
  return {
    version,
    handlers: names.map((name) => ({
      name,
      patterns: ['paid'],
      firstSeenAt: at,
      lastSeenAt: at,
    })),
  };
}

describe('EventStorage', () => {
  it('assigns a new event to free places and starts what the store assigned', async () => {
    const { storage, received, started, woken } = bench({ ...STORED, claimed: CLAIMED });
    const { event, receipt } = await storage.add(FACTS, BODY);
    expect(received[0]).toMatchObject({
      handlers: ['own'],
      catalogVersion: 0,
      assign: { worker: 'w', handlers: ['own'] },
    });
    expect(event.handlers).toEqual(['own']);
    expect(receipt.outcome).toBe('stored');
    expect(started).toEqual([CLAIMED]);
    expect(woken).toEqual([]);
  });

  it('wakes the worker only for deliveries that are pending', async () => {
    for (const pending of [false, true]) {
      const { storage, state, received, woken } = bench({ ...STORED, pending });
      state.places = false;
      await storage.add(FACTS, BODY);
      expect(received[0]!.assign).toBeNull();
      expect(woken).toEqual(pending ? [['own']] : []);
    }
  });

  it('reserves nothing for a stale event, or one that only other processes handle', async () => {
    const { storage, received, started, state } = bench(STORED, OUTDATED, STORED);
    state.catalogs = [
      { version: 1, handlers: [{ ...catalogOf(1, 'all').handlers[0]!, patterns: ['*'] }] },
    ];
    await storage.add({ ...FACTS, stale: true }, BODY);
    await storage.add({ ...FACTS, eventType: 'other' }, BODY);
    expect(received.map(({ assign }) => assign)).toEqual([null, null, null]);
    expect(received.map(({ handlers }) => handlers)).toEqual([[], [], ['all']]);
    expect(started).toEqual([]);
  });

  it('IN-32 receives again with the current catalog, and reserves anew each time', async () => {
    const { storage, received, started, state } = bench(OUTDATED, OUTDATED, {
      ...STORED,
      claimed: CLAIMED,
    });
    state.catalogs = [catalogOf(4, 'theirs'), catalogOf(5, 'theirs', 'newest')];
    const { event } = await storage.add(FACTS, BODY);
    expect(received.map(({ catalogVersion, handlers }) => [catalogVersion, handlers])).toEqual([
      [0, ['own']],
      [4, ['own', 'theirs']],
      [5, ['own', 'theirs', 'newest']],
    ]);
    expect(received.at(-1)!.assign?.handlers).toEqual(['own']);
    expect(event.handlers).toEqual(['own', 'theirs', 'newest']);
    expect(started).toEqual([[], [], CLAIMED]);
  });

  it('IN-32 gives up if the catalog changes each time', async () => {
    const { storage, received, started, state } = bench(OUTDATED);
    state.catalogs = [catalogOf(1)];
    await expect(storage.add(FACTS, BODY)).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(received).toHaveLength(11);
    expect(started).toHaveLength(11);
  });

  it('reports to the worker that the outcome of a receive is unknown, exactly once', async () => {
    const { storage, started } = bench(new Error('cut'));
    await expect(storage.add(FACTS, BODY)).rejects.toThrow('cut');
    expect(started).toEqual([null]);
  });

  it('frees the places if the inbox is full, since then nothing was stored', async () => {
    const { storage, started } = bench(new PaymentsError('inbox_full', 'full'));
    await expect(storage.add(FACTS, BODY)).rejects.toMatchObject({ code: 'inbox_full' });
    expect(started).toEqual([[]]);
  });

  it('frees the places if the catalog cannot be loaded', async () => {
    const { storage, started } = bench(OUTDATED);
    await expect(storage.add(FACTS, BODY)).rejects.toThrow();
    expect(started).toEqual([[]]);
  });
});
