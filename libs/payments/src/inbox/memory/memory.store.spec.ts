import { beforeEach, describe, expect, it } from '@jest/globals';
import type { PaymentsRuntime } from '../../payments.runtime.js';
import type { ClaimedDelivery, IncomingEvent } from '../inbox-store.js';
import { MemoryStore } from './memory.store.js';

let now = 0;
const runtime: PaymentsRuntime = {
  now: () => now,
  monotonic: () => now,
  random: () => 0.5,
  schedule: () => () => {},
};
const LIMITS = { maxEvents: 100_000, maxBytes: 1e9, retentionMs: 60_000 };
let store: MemoryStore;

beforeEach(() => {
  now = 0;
  store = new MemoryStore(LIMITS, runtime);
});

function event(id: string, changes: Partial<IncomingEvent> = {}): IncomingEvent {
  return {
    company: 'c',
    id,
    dedupeKey: changes.id ?? id,
    eventType: 't',
    occurredAt: new Date(0),
    orderingKey: null,
    raw: Buffer.from(`body of ${id}`),
    headers: {},
    stale: false,
    handlers: ['h'],
    ...changes,
  };
}

const claim = (limit = 10, handlers = ['h'], leaseMs = 1000) =>
  store.claim({ handlers, limit, leaseMs });
const ids = (claimed: readonly ClaimedDelivery[]) => claimed.map(({ id }) => id);
const outcomes = async (...events: IncomingEvent[]) =>
  (await store.receive(events)).map(({ outcome }) => outcome);
const again = (id: string) =>
  store.redrive([{ company: 'c', id, handlers: ['h', 'i', 'j', 'k'] }], {
    force: false,
    dueInMs: [0],
  });
const retry = (retryInMs: number | null) => ({ error: 'x', retryInMs });

describe('receive', () => {
  it('throws inbox_full having stored none of a batch, and counts a duplicate of it once', async () => {
    store = new MemoryStore({ ...LIMITS, maxEvents: 2 }, runtime);
    await expect(store.receive([event('a'), event('b'), event('c')])).rejects.toMatchObject({
      code: 'inbox_full',
    });
    expect(await store.find('c', 'a')).toBeUndefined();
    expect(await outcomes(event('a'), event('b'), event('a'), event('b'))).toEqual([
      'stored',
      'stored',
      'duplicate',
      'duplicate',
    ]);
  });

  it('hands out copies: what is done to a body found changes nothing', async () => {
    await store.receive([event('a')]);
    (await store.find('c', 'a'))!.raw!.fill(0);
    expect((await store.find('c', 'a'))!.raw!.toString()).toBe('body of a');
  });
});

describe('claim', () => {
  it('leases the longest due first, no more than asked for, of the handlers named', async () => {
    await store.receive([event('a'), event('b', { handlers: ['other'] }), event('c')]);
    now = 5;
    await store.receive([event('d', { handlers: ['h', 'other'] })]);
    expect(ids(await claim(2))).toEqual(['a', 'c']);
    expect(await claim()).toMatchObject([{ id: 'd', handler: 'h', attempt: 1, token: 1 }]);
    expect(ids(await claim(10, []))).toEqual([]);
    expect(ids(await claim(10, ['other']))).toEqual(['b', 'd']);
  });

  it('never leases two of one company, handler and ordering key, and others side by side', async () => {
    const k = { orderingKey: 'k', handlers: ['h', 'i'] };
    await store.receive([
      event('a', k),
      event('b', k),
      event('d', { ...k, company: 'd' }),
      event('e', { ...k, orderingKey: 'l' }),
      event('f'),
      event('g'),
    ]);
    const claimed = await claim(20, ['h', 'i']);
    expect(claimed.map(({ id, handler }) => id + handler)).toEqual([
      'ah',
      'ai',
      'dh',
      'di',
      'eh',
      'ei',
      'fh',
      'gh',
    ]);
    await store.complete(claimed[0]!);
    expect((await claim(20, ['h', 'i'])).map(({ id, handler }) => id + handler)).toEqual(['bh']);
  });

  it.each(['complete', 'fail', 'die', 'release', 'lease'])(
    'lets the next of a key go on when the first comes to its end: %s',
    async (end) => {
      await store.receive(['a', 'b', 'c', 'd'].map((id) => event(id, { orderingKey: 'k' })));
      const [first] = await claim();
      expect(first!.id).toBe('a');
      expect(await claim()).toEqual([]);
      if (end === 'complete') await store.complete(first!);
      if (end === 'fail') await store.fail(first!, retry(5000));
      if (end === 'die') await store.fail(first!, retry(null));
      if (end === 'release') await store.release(first!);
      now = 1000;
      const again = end === 'release' || end === 'lease';
      const seen = [];
      for (let [next] = await claim(); next !== undefined; [next] = await claim()) {
        seen.push(next.id);
        expect(await claim()).toEqual([]);
        await store.complete(next);
      }
      expect(seen.toSorted()).toEqual(again ? ['a', 'b', 'c', 'd'] : ['b', 'c', 'd']);
    },
  );
});

describe('redrive', () => {
  it('makes pending and dead deliveries due at once, those that are dead from their first attempt', async () => {
    await store.receive([event('a', { handlers: ['h', 'i', 'j', 'k'] })]);
    const [h, i, j] = await claim(3, ['h', 'i', 'j', 'k']);
    await store.fail(h!, retry(9000));
    await store.fail(i!, retry(null));
    await store.complete(j!);
    await again('a');
    expect(await again('unknown')).toBe(0);
    const claimed = await claim(10, ['h', 'i', 'j', 'k']);
    expect(claimed.map(({ handler, attempt }) => [handler, attempt])).toEqual([
      ['h', 2],
      ['i', 1],
      ['k', 1],
    ]);
    await again('a');
    expect(await claim(10, ['h', 'i', 'j', 'k'])).toEqual([]);
  });

  it('keeps one of a busy key waiting though it was redriven', async () => {
    await store.receive([event('a', { orderingKey: 'k' }), event('b', { orderingKey: 'k' })]);
    const [a] = await claim();
    await store.redrive([{ company: 'c', id: 'b', handlers: ['h'] }], {
      force: false,
      dueInMs: [0],
    });
    expect(await claim()).toEqual([]);
    await store.complete(a!);
    expect(ids(await claim())).toEqual(['b']);
  });
});

describe('nextDueInMs', () => {
  it('tells when one is due or a lease ends, of the handlers named', async () => {
    expect(await store.nextDueInMs(['h'])).toBeNull();
    await store.receive([event('a'), event('b', { handlers: ['i'] })]);
    expect(await store.nextDueInMs(['h'])).toBe(0);
    expect(await store.nextDueInMs(['j'])).toBeNull();
    const [a] = await claim();
    expect(await store.nextDueInMs(['h'])).toBe(1000);
    await store.fail(a!, retry(300));
    expect(await store.nextDueInMs(['h'])).toBe(300);
    now = 400;
    expect(await store.nextDueInMs(['h'])).toBe(-100);
  });

  it('calls one that waits for its ordering key due with the lease it waits for, not at once', async () => {
    await store.receive([event('a', { orderingKey: 'k' }), event('b', { orderingKey: 'k' })]);
    await claim();
    now = 100;
    expect(await store.nextDueInMs(['h'])).toBe(900);
  });

  it('takes over what ran out beside a lease that was prolonged', async () => {
    await store.receive([event('a'), event('b')]);
    const [a] = await claim();
    expect(await store.extend(a!, 5000)).toBe(true);
    now = 1000;
    expect(ids(await claim())).toEqual(['b']);
    expect(await store.nextDueInMs(['h'])).toBe(1000);
  });
});
