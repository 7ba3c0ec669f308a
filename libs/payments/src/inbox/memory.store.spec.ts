import { beforeEach, describe, expect, it } from '@jest/globals';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type { ClaimedDelivery, IncomingEvent } from './inbox.store.js';
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
    orderingKey: null,
    raw: Buffer.from(`body of ${id}`),
    handlers: ['h'],
    ...changes,
  };
}

const claim = (limit = 10, handlers = ['h'], leaseMs = 1000) =>
  store.claim({ handlers, limit, leaseMs });
const ids = (claimed: readonly ClaimedDelivery[]) => claimed.map(({ id }) => id);
const outcomes = async (...events: IncomingEvent[]) =>
  (await store.receive(events)).map(({ outcome }) => outcome);
const retry = (retryInMs: number | null) => ({ error: 'x', retryInMs });

describe('receive', () => {
  it('knows a copy, a conflict and a duplicate within one batch', async () => {
    expect(await outcomes(event('a'), event('a'), event('b'))).toEqual([
      'stored',
      'duplicate',
      'stored',
    ]);
    expect(await outcomes(event('a', { raw: Buffer.from('other') }), event('a'))).toEqual([
      'conflict',
      'duplicate',
    ]);
    expect(await outcomes(event('a', { company: 'd' }))).toEqual(['stored']);
    expect((await store.find('c', 'a'))?.raw?.toString()).toBe('body of a');
  });

  it('goes by the dedupe key and by the id, and calls another id with the same key no conflict', async () => {
    await store.receive([event('a', { dedupeKey: 'k' })]);
    expect(
      await store.receive([event('b', { dedupeKey: 'k', raw: Buffer.from('x') })]),
    ).toMatchObject([{ outcome: 'duplicate', id: 'a' }]);
    expect(await outcomes(event('a', { dedupeKey: 'l' }))).toEqual(['duplicate']);
  });

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

  it('takes over a lease that ran out, with the attempt counted and the holder refused', async () => {
    await store.receive([event('a')]);
    const [stale] = await claim();
    now = 999;
    expect(await claim()).toEqual([]);
    now = 1000;
    // Over is over, before anyone else has it too.
    expect(await store.extend(stale!, 1000)).toBe(false);
    const [fresh] = await claim();
    expect(fresh).toMatchObject({ attempt: 2, token: 2 });
    for (const act of ['complete', 'release'] as const)
      expect(await store[act](stale!)).toBe(false);
    expect(await store.fail(stale!, retry(0))).toBe(false);
    expect(await store.extend(stale!, 1000)).toBe(false);
    expect(await store.complete(fresh!)).toBe(true);
    expect(await store.complete(fresh!)).toBe(false);
  });

  it('leaves a lease that was prolonged alone', async () => {
    await store.receive([event('a')]);
    const [held] = await claim();
    now = 900;
    expect(await store.extend(held!, 1000)).toBe(true);
    now = 1800;
    expect(await claim()).toEqual([]);
    expect(await store.complete(held!)).toBe(true);
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

describe('fail, release and expedite', () => {
  it('makes a failure due again when it was told to, or dead', async () => {
    await store.receive([event('a')]);
    await store.fail((await claim())[0]!, retry(500));
    now = 499;
    expect(await claim()).toEqual([]);
    now = 500;
    await store.fail((await claim())[0]!, retry(null));
    expect((await store.find('c', 'a'))!.deliveries).toEqual([
      { handler: 'h', state: 'dead', attempts: 2, lastError: 'x' },
    ]);
  });

  it('charges no attempt for what was released', async () => {
    await store.receive([event('a')]);
    expect(await store.release((await claim())[0]!)).toBe(true);
    expect(await claim()).toMatchObject([{ attempt: 1, token: 2 }]);
  });

  it('makes pending and dead deliveries due at once, those that are dead from their first attempt', async () => {
    await store.receive([event('a', { handlers: ['h', 'i', 'j', 'k'] })]);
    const [h, i, j] = await claim(3, ['h', 'i', 'j', 'k']);
    await store.fail(h!, retry(9000));
    await store.fail(i!, retry(null));
    await store.complete(j!);
    await store.expedite('c', 'a');
    await store.expedite('c', 'unknown');
    const claimed = await claim(10, ['h', 'i', 'j', 'k']);
    expect(claimed.map(({ handler, attempt }) => [handler, attempt])).toEqual([
      ['h', 2],
      ['i', 1],
      ['k', 1],
    ]);
    await store.expedite('c', 'a');
    expect(await claim(10, ['h', 'i', 'j', 'k'])).toEqual([]);
  });

  it('keeps one of a busy key waiting though it was expedited', async () => {
    await store.receive([event('a', { orderingKey: 'k' }), event('b', { orderingKey: 'k' })]);
    const [a] = await claim();
    await store.expedite('c', 'b');
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
});
