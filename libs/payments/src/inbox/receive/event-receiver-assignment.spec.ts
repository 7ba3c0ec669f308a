import { describe, expect, it } from '@jest/globals';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { PaymentsError } from '../../errors/payments-error.js';
import { EventReceiver, VerifiedEvent } from './event-receiver.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type {
  ClaimedDelivery,
  HandlerCatalog,
  IncomingEvent,
  InboxStore,
  StoreReceipt,
} from '../store/inbox-store.js';
import type { InboxWorker } from '../work/inbox-worker.js';
import { resolveReceiveOptions } from './receive-options.js';
import { StoredBodies } from '../store/body-codec.js';

const MAX_AGE_MS = 1000;
const PAID = { id: 'e', eventType: 'paid' };
const STORED: StoreReceipt = {
  outcome: 'stored',
  id: 'e',
  claimed: [],
  pending: false,
  fulfilled: [],
};
const OUTDATED: StoreReceipt = { ...STORED, outcome: 'outdated' };
const CLAIMED = [{ handler: 'own' }] as unknown as readonly ClaimedDelivery[];
/** {@link CLAIMED} with the body and the facts of the event that the receiver adds. */
const STARTED = CLAIMED.map((delivery) => ({
  ...delivery,
  raw: Buffer.from('{}'),
  traced: { traceparent: null, eventType: 'paid' },
}));

type Result = StoreReceipt | Error;

/** A process with the handler `own`. Its store returns `results` in turn, and repeats the last one. */
function processWith(...results: [Result, ...Result[]]) {
  const received: IncomingEvent[] = [];
  const started: (readonly ClaimedDelivery[] | null)[] = [];
  const parsed: unknown[] = [];
  const woken: unknown[] = [];
  const state = {
    freeSlot: true,
    catalogs: [] as HandlerCatalog[],
    loads: 0,
  };
  const store = {
    capabilities: { durable: true },
    receive: async ([event]: readonly IncomingEvent[]) => {
      received.push(event!);
      const result = results.length > 1 ? results.shift()! : results[0];
      if (result instanceof Error) throw result;
      return [result];
    },
    catalog: async () => {
      state.loads += 1;
      return state.catalogs.length > 1 ? state.catalogs.shift()! : state.catalogs[0]!;
    },
  } as unknown as InboxStore;
  const worker = {
    reserve: (handlers: readonly string[]) =>
      state.freeSlot && handlers.includes('own')
        ? {
            workerId: 'w',
            handlers: ['own'],
            start: (claimed: typeof CLAIMED | null, event: unknown) => {
              started.push(claimed);
              parsed.push(event);
            },
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
    new StoredBodies(null, runtime),
  );
  const receive = (event = {}, ageMs = 0, unshared = false) => {
    const timestamp = new Date(runtime.now() - ageMs).toISOString();
    const envelope = { ...PAID, timestamp, data: {}, metadata: {}, ...event };
    const verified = new VerifiedEvent('c', envelope, Buffer.from('{}'), 0);
    return receiver.receive(verified, unshared ? verified.event : null);
  };
  return { receive, received, started, parsed, woken, state };
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

describe('EventReceiver: deliveries assigned on receipt', () => {
  it('the receiver reserves free slots for a new event, and starts the deliveries that the store assigned', async () => {
    const { receive, received, started, woken } = processWith({ ...STORED, claimed: CLAIMED });
    const { status } = await receive();
    expect(received[0]).toMatchObject({
      handlers: ['own'],
      catalogVersion: 0,
      assign: { workerId: 'w', handlers: ['own'] },
    });
    expect(status).toBe('stored');
    expect(started).toEqual([STARTED]);
    expect(woken).toEqual([]);
  });

  it('the receiver passes its parsed event to a handler only if no controller of the application has access to this event', async () => {
    for (const unshared of [false, true]) {
      const { receive, parsed } = processWith({ ...STORED, claimed: CLAIMED });
      await receive({}, 0, unshared);
      expect(parsed).toEqual([unshared ? expect.objectContaining(PAID) : null]);
    }
  });

  it('the receiver wakes the worker only for pending deliveries', async () => {
    for (const pending of [false, true]) {
      const { receive, state, received, woken } = processWith({ ...STORED, pending });
      state.freeSlot = false;
      await receive();
      expect(received[0]!.assign).toBeNull();
      expect(woken).toEqual(pending ? [['own']] : []);
    }
  });

  it('the receiver reserves no slot for a stale event, or an event that only other processes handle', async () => {
    const { receive, received, started, state } = processWith(STORED, OUTDATED, STORED);
    state.catalogs = [
      { version: 1, handlers: [{ ...catalogOf(1, 'all').handlers[0]!, patterns: ['*'] }] },
    ];
    await receive({}, MAX_AGE_MS + 1);
    await receive({ eventType: 'other' });
    expect(received.map(({ assign }) => assign)).toEqual([null, null, null]);
    expect(received.map(({ handlers }) => handlers)).toEqual([[], [], ['all']]);
    expect(started).toEqual([]);
  });

  it('IN-32 if the catalog of handlers is outdated, the receiver receives the event again with the current catalog and a new reservation', async () => {
    const { receive, received, started, state } = processWith(OUTDATED, OUTDATED, {
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
    expect(started).toEqual([[], [], STARTED]);
  });

  it('IN-32 the receiver rejects an event if the catalog of handlers changes during every attempt to store the event', async () => {
    const { receive, received, started, state } = processWith(OUTDATED);
    state.catalogs = [catalogOf(1)];
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(received).toHaveLength(11);
    expect(started).toHaveLength(11);
  });

  it('if receive() of the store fails, the receiver calls start(null) of the reservation once, because the event may be stored', async () => {
    const { receive, started } = processWith(new Error('cut'));
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(started).toEqual([null]);
  });

  it('if the inbox is full, the receiver frees the reserved slots, because nothing was stored', async () => {
    const { receive, started } = processWith(new PaymentsError('inbox_full', 'full'));
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_full' });
    expect(started).toEqual([[]]);
  });

  it('if the catalog of handlers cannot be loaded, the receiver frees the reserved slots', async () => {
    const { receive, started } = processWith(OUTDATED);
    await expect(receive()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    expect(started).toEqual([[]]);
  });
});
