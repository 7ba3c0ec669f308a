import { describe, expect, it } from '@jest/globals';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { PaymentsError } from '../../errors/payments-error.js';
import { EventReceiver } from './event-receiver.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type {
  ClaimedDelivery,
  HandlerCatalog,
  IncomingEvent,
  InboxStore,
  StoreReceipt,
} from '../store/inbox-store.js';
import type { InboxWorker } from '../work/inbox-worker.js';
import { resolveReceiveOptions } from '../inbox-options.js';
import { OutcomeWatches } from './awaited-handlers.js';
import { StoredBodies } from '../store/body-codec.js';
import { VerifiedEvent } from './verified-event.js';

const MAX_AGE_MS = 1000;
const PAID = { id: 'e', eventType: 'paid' };
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
    capabilities: { durable: true },
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
      state.places && handlers.includes('own')
        ? {
            worker: 'w',
            handlers: ['own'],
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
  const runtime = new FakeRuntime();
  const receiver = new EventReceiver(
    store,
    resolveReceiveOptions({}),
    MAX_AGE_MS,
    runtime,
    catalog,
    worker,
    new OutcomeWatches(),
    new StoredBodies(null, runtime),
  );
  const receive = (event = {}, ageMs = 0) => {
    const timestamp = new Date(runtime.now() - ageMs).toISOString();
    const envelope = { ...PAID, timestamp, data: {}, metadata: {}, ...event };
    return receiver.receive(new VerifiedEvent('c', envelope, Buffer.from('{}'), 0));
  };
  return { receive, received, started, woken, state };
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

describe('EventReceiver, deliveries assigned on receipt', () => {
  it('assigns a new event to free places and starts what the store assigned', async () => {
    const { receive, received, started, woken } = bench({ ...STORED, claimed: CLAIMED });
    const { status } = await receive();
    expect(received[0]).toMatchObject({
      handlers: ['own'],
      catalogVersion: 0,
      assign: { worker: 'w', handlers: ['own'] },
    });
    expect(status).toBe('stored');
    expect(started).toEqual([CLAIMED]);
    expect(woken).toEqual([]);
  });

  it('wakes the worker only for deliveries that are pending', async () => {
    for (const pending of [false, true]) {
      const { receive, state, received, woken } = bench({ ...STORED, pending });
      state.places = false;
      await receive();
      expect(received[0]!.assign).toBeNull();
      expect(woken).toEqual(pending ? [['own']] : []);
    }
  });

  it('reserves nothing for a stale event, or one that only other processes handle', async () => {
    const { receive, received, started, state } = bench(STORED, OUTDATED, STORED);
    state.catalogs = [
      { version: 1, handlers: [{ ...catalogOf(1, 'all').handlers[0]!, patterns: ['*'] }] },
    ];
    await receive({}, MAX_AGE_MS + 1);
    await receive({ eventType: 'other' });
    expect(received.map(({ assign }) => assign)).toEqual([null, null, null]);
    expect(received.map(({ handlers }) => handlers)).toEqual([[], [], ['all']]);
    expect(started).toEqual([]);
  });

  it('IN-32 receives again with the current catalog, and reserves anew each time', async () => {
    const { receive, received, started, state } = bench(OUTDATED, OUTDATED, {
      ...STORED,
      claimed: CLAIMED,
    });
    state.catalogs = [catalogOf(4, 'theirs'), catalogOf(5, 'theirs', 'newest')];
    await receive();
    expect(received.map(({ catalogVersion, handlers }) => [catalogVersion, handlers])).toEqual([
      [0, ['own']],
      [4, ['own', 'theirs']],
      [5, ['own', 'theirs', 'newest']],
    ]);
    expect(received.at(-1)!.assign?.handlers).toEqual(['own']);
    expect(started).toEqual([[], [], CLAIMED]);
  });

  it('IN-32 gives up if the catalog changes each time', async () => {
    const { receive, received, started, state } = bench(OUTDATED);
    state.catalogs = [catalogOf(1)];
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(received).toHaveLength(11);
    expect(started).toHaveLength(11);
  });

  it('reports to the worker that the outcome of a receive is unknown, exactly once', async () => {
    const { receive, started } = bench(new Error('cut'));
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(started).toEqual([null]);
  });

  it('frees the places if the inbox is full, since then nothing was stored', async () => {
    const { receive, started } = bench(new PaymentsError('inbox_full', 'full'));
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_full' });
    expect(started).toEqual([[]]);
  });

  it('frees the places if the catalog cannot be loaded', async () => {
    const { receive, started } = bench(OUTDATED);
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(started).toEqual([[]]);
  });
});
