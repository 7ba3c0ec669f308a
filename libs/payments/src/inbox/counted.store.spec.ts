import { Logger } from '@nestjs/common';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/fake.runtime.js';
import { turns } from '../../../../test/support/worker.bench.js';
import type { ActivityCounts } from './activity.minutes.js';
import { CountedStore } from './counted.store.js';
import { MemoryStore } from './memory/memory.store.js';
import type { IncomingEvent, InboxStore } from './store.contract.js';

const warnings: string[] = [];
let runtime: FakeRuntime;
let recorded: ActivityCounts[];
/** What a recording does; the store is a memory store that calls itself durable, as a database does. */
let record: (counts: ActivityCounts) => Promise<void>;
let inner: InboxStore;
let store: CountedStore;

beforeEach(() => {
  runtime = new FakeRuntime();
  recorded = [];
  warnings.length = 0;
  record = async (counts) => void recorded.push(counts);
  inner = new MemoryStore({ maxEvents: 100, maxBytes: 1e6, retentionMs: 1e9 }, runtime);
  Object.defineProperty(inner, 'capabilities', {
    value: { durable: true, shared: true, transactional: false, ownClock: false },
  });
  inner.record = (counts) => record(counts);
  store = new CountedStore(inner, runtime);
  Logger.overrideLogger({
    log: () => {},
    error: () => {},
    warn: (line: string) => void warnings.push(line),
  });
});

function event(id: string): IncomingEvent {
  return {
    company: 'c',
    id,
    dedupeKey: id,
    eventType: 't',
    occurredAt: new Date(0),
    orderingKey: null,
    raw: Buffer.from('{}'),
    headers: {},
    stale: false,
    handlers: ['h'],
  };
}

const claim = () => store.claim({ handlers: ['h'], limit: 10, leaseMs: 1e6 });

/** Which buckets of the histogram hold what, by their place. */
const buckets = ({ handledWithin }: ActivityCounts) =>
  handledWithin.flatMap((count, place) => (count > 0 ? [[place, count]] : []));

describe('a store whose activity is counted', () => {
  it('records what went through it together, some seconds later, and nothing where nothing did', async () => {
    await store.receive([event('a'), event('b'), event('a')]);
    await store.receive([event('a'), event('c')]);
    const [a, b, c] = await claim();
    await store.complete(a!);
    await store.fail(b!, { error: 'no', retryInMs: 5000 });
    await store.fail(c!, { error: 'no', retryInMs: null });
    expect(await store.complete(c!)).toBe(false);
    expect(await store.fail(c!, { error: 'no', retryInMs: null })).toBe(false);
    runtime.advance(4999);
    await turns();
    expect(recorded).toEqual([]);
    runtime.advance(1);
    await turns();
    expect(recorded).toMatchObject([{ received: 3, handled: 1, failed: 2, dead: 1 }]);
    expect(runtime.pending).toBe(0);
    runtime.advance(60_000);
    await turns();
    expect(recorded).toHaveLength(1);
  });

  it('counts the time to handled by the age that the store tells and its own clock since', async () => {
    // A worker whose wall clock is an hour off, either way, and jumps meanwhile.
    runtime.setWallClock(3_600_000);
    await store.receive([event('a')]);
    const claimInner = inner.claim.bind(inner);
    inner.claim = async (request) =>
      (await claimInner(request)).map((delivery) => ({ ...delivery, ageMs: 900 }));
    const [a] = await claim();
    runtime.setWallClock(-7_200_000);
    runtime.passMonotonic(600);
    await store.complete(a!);
    await store.close();
    // 1,500 ms: more than a second, at most two.
    expect(buckets(recorded[0]!)).toEqual([[10, 1]]);
  });

  it('counts a commit as handled, and one that failed as nothing', async () => {
    await store.receive([event('a')]);
    const [a] = await claim();
    inner.commit = async () => Promise.reject(new Error('rolled back'));
    await expect(store.commit(a!, () => 1)).rejects.toThrow('rolled back');
    inner.commit = (async () => 42) as never;
    expect(await store.commit(a!, () => 42)).toBe(42);
    await store.close();
    expect(recorded).toMatchObject([{ received: 1, handled: 1, failed: 0 }]);
    expect(buckets(recorded[0]!)).toEqual([[0, 1]]);
  });

  it('keeps the counts of a recording that failed, disturbs nobody, and says so once', async () => {
    const record_ = record;
    record = async () => {
      // Something comes while it is tried.
      await store.receive([event('b')]);
      throw new Error('down');
    };
    await store.receive([event('a')]);
    for (let round = 0; round < 3; round += 1) {
      runtime.advance(5000);
      await turns();
    }
    expect(await claim()).toHaveLength(2);
    record = record_;
    runtime.advance(5000);
    await turns();
    expect(recorded).toMatchObject([{ received: 2 }]);
    expect(warnings).toEqual([expect.stringMatching(/could not be recorded: Error: down/)]);
    expect(runtime.pending).toBe(0);
  });

  it('loses nothing that is counted while a recording is under way', async () => {
    let end = () => {};
    const record_ = record;
    record = async (counts) => {
      await new Promise<void>((resolve) => (end = resolve));
      await record_(counts);
    };
    await store.receive([event('a')]);
    runtime.advance(5000);
    await turns();
    await store.receive([event('b'), event('c')]);
    end();
    await turns();
    record = record_;
    runtime.advance(5000);
    await turns();
    expect(recorded.map(({ received }) => received)).toEqual([1, 2]);
  });

  it('shows what this process has counted until now, without waiting for its turn', async () => {
    await store.receive([event('a')]);
    await store.activity(1);
    expect(recorded).toMatchObject([{ received: 1 }]);
    record = () => Promise.reject(new Error('down'));
    await store.receive([event('b')]);
    expect(await store.activity(1)).toHaveLength(1);
  });

  it('records the last counts as it closes, but does not wait long for a store that hangs', async () => {
    await store.receive([event('a')]);
    record = () => new Promise(() => {});
    let closed = false;
    const closing = store.close().then(() => (closed = true));
    await turns();
    runtime.advance(999);
    await turns();
    expect(closed).toBe(false);
    runtime.advance(1);
    await closing;
    expect(runtime.pending).toBe(0);
  });

  it('tells a store in memory at once, which costs nothing and needs no timer', async () => {
    const memory = new MemoryStore({ maxEvents: 9, maxBytes: 1e6, retentionMs: 1e9 }, runtime);
    const counted = new CountedStore(memory, runtime);
    await counted.receive([event('a')]);
    await turns();
    expect((await memory.activity(1))[0]).toMatchObject({ received: 1 });
    expect(runtime.pending).toBe(0);
  });
});
