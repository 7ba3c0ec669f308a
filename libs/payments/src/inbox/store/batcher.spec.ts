import { describe, expect, it } from '@jest/globals';
import { Batcher } from './batcher.js';

interface Write {
  readonly id: string;
  readonly bytes: number;
}

const write = (id: string, bytes = 10): Write => ({ id, bytes });

/** A store whose calls end when the test ends them. The result of a write is its id. */
class SlowStore {
  readonly calls: {
    ids: string[];
    succeed: () => void;
    fail: (error: unknown) => void;
  }[] = [];
  readonly batcher: Batcher<Write, string>;

  constructor(maxCalls = 2) {
    this.batcher = new Batcher({
      call: (writes) =>
        new Promise<string[]>((resolve, reject) => {
          const ids = writes.map(({ id }) => id);
          this.calls.push({ ids, succeed: () => resolve(ids), fail: reject });
        }),
      maxCalls,
      bytesOf: ({ bytes }) => bytes,
      isValueError: (error) => error === VALUE_ERROR,
    });
  }

  /** Starts each request in another turn of the event loop. */
  async addInTurns(...requests: string[][]): Promise<Promise<string[]>[]> {
    const added: Promise<string[]>[] = [];
    for (const ids of requests) {
      added.push(this.add(...ids));
      await turn();
    }
    return added;
  }

  add(...ids: string[]): Promise<string[]> {
    return this.batcher.add(ids.map((id) => write(id)));
  }

  get ids(): string[][] {
    return this.calls.map(({ ids }) => ids);
  }
}

const VALUE_ERROR = new Error('a value cannot be stored');
/** Resolves after two turns of the event loop, because the next call starts a turn after the previous call ends. */
const turn = async (): Promise<void> => {
  for (const _ of [1, 2]) await new Promise((resolve) => setImmediate(resolve));
};

describe('Batcher', () => {
  it('Batcher runs two calls at the same time, and then writes together all requests that were queued during these calls', async () => {
    const store = new SlowStore();
    const added = await store.addInTurns(['a'], ['b'], ['c', 'd'], ['e']);
    expect(store.ids).toEqual([['a'], ['b']]);
    store.calls[0]!.succeed();
    expect(await added[0]).toEqual(['a']);
    await turn();
    expect(store.calls[2]?.ids).toEqual(['c', 'd', 'e']);
    for (const { succeed } of store.calls) succeed();
    expect(await Promise.all(added)).toEqual([['a'], ['b'], ['c', 'd'], ['e']]);
    await store.batcher.drained();
  });

  it('Batcher writes the requests of one turn of the event loop together', async () => {
    const store = new SlowStore();
    const added = [['a'], ['b', 'c']].map((ids) => store.add(...ids));
    await turn();
    expect(store.ids).toEqual([['a', 'b', 'c']]);
    store.calls[0]!.succeed();
    expect(await Promise.all(added)).toEqual([['a'], ['b', 'c']]);
  });

  it('Batcher starts a second call if the first one is small, or if many items are queued', async () => {
    const store = new SlowStore();
    const many = Array.from({ length: 40 }, (_, n) => store.add(`a${n}`));
    await turn();
    const queued = Array.from({ length: 99 }, (_, n) => store.add(`b${n}`));
    await turn();
    expect(store.ids.map(({ length }) => length)).toEqual([40]);
    queued.push(store.add('b99'));
    await turn();
    expect(store.ids.map(({ length }) => length)).toEqual([40, 100]);
    for (const { succeed } of store.calls.splice(0)) succeed();
    const stored = (await Promise.all([...many, ...queued])).flat();
    expect(stored).toEqual([...many.map((_, n) => `a${n}`), ...queued.map((_, n) => `b${n}`)]);
    const [few, next] = await store.addInTurns(['c'], ['d']);
    expect(store.ids).toEqual([['c'], ['d']]);
    for (const { succeed } of store.calls) succeed();
    expect(await Promise.all([few, next])).toEqual([['c'], ['d']]);
  });

  it('drained() resolves after the queued requests are written', async () => {
    const store = new SlowStore();
    let drained = false;
    const added = store.add('a');
    const draining = store.batcher.drained().then(() => (drained = true));
    await turn();
    expect(drained).toBe(false);
    store.calls[0]!.succeed();
    await Promise.all([added, draining]);
  });

  it('Batcher limits a call by items and bytes, and writes a larger request alone', async () => {
    const store = new SlowStore();
    const sizes = [400, 200, 900, 1];
    const requests = sizes.map((count, n) =>
      store.add(...Array.from({ length: count }, (_, i) => `${n}-${i}`)),
    );
    const large = [3e6, 3e6].map((bytes, n) => store.batcher.add([write(`large ${n}`, bytes)]));
    await turn();
    for (let n = 0; n < store.calls.length; n += 1) {
      store.calls[n]!.succeed();
      await turn();
    }
    await Promise.all([...requests, ...large]);
    expect(store.ids.map(({ length }) => length)).toEqual([400, 200, 900, 2, 1]);
  });

  it('Batcher rejects all queued requests if the database is not reachable, and writes the requests that arrive after that', async () => {
    const store = new SlowStore();
    const added = await store.addInTurns(['a'], ['b'], ['c'], ['d']);
    const failed = Promise.allSettled(added);
    store.calls[0]!.fail(new Error('connect ECONNREFUSED'));
    store.calls[1]!.fail(new Error('connect ECONNREFUSED'));
    expect((await failed).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    const [next] = await store.addInTurns(['e']);
    store.calls.at(-1)!.succeed();
    expect(await next).toEqual(['e']);
  });

  it('Batcher writes requests one by one if one of them cannot be stored', async () => {
    const store = new SlowStore();
    const added = await store.addInTurns(['a'], ['b'], ['bad'], ['good']);
    const results = Promise.allSettled(added);
    store.calls[0]!.succeed();
    await added[0];
    store.calls[1]!.succeed();
    await turn();
    expect(store.calls[2]?.ids).toEqual(['bad', 'good']);
    store.calls[2]!.fail(VALUE_ERROR);
    await turn();
    expect(store.calls[3]?.ids).toEqual(['bad']);
    store.calls[3]!.fail(VALUE_ERROR);
    await turn();
    store.calls[4]!.succeed();
    expect((await results).map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
  });

  it('Batcher rejects all requests of a call at once if the database fails while it writes them one by one', async () => {
    const store = new SlowStore(1);
    const added = ['bad', 'a', 'b', 'c'].map((id) => store.add(id));
    const results = Promise.allSettled(added);
    await turn();
    store.calls[0]!.fail(VALUE_ERROR);
    await turn();
    store.calls[1]!.fail(VALUE_ERROR);
    await turn();
    store.calls[2]!.succeed();
    await turn();
    const down = new Error('connect ECONNREFUSED');
    store.calls[3]!.fail(down);
    await turn();
    expect(store.ids).toEqual([['bad', 'a', 'b', 'c'], ['bad'], ['a'], ['b']]);
    expect(await results).toEqual([
      { status: 'rejected', reason: VALUE_ERROR },
      { status: 'fulfilled', value: ['a'] },
      { status: 'rejected', reason: down },
      { status: 'rejected', reason: down },
    ]);
  });

  it('Batcher rejects a request with inbox_full if 20,000 items are queued', async () => {
    const store = new SlowStore();
    const many = Array.from({ length: 19_999 }, (_, n) => write(`${n}`));
    const added: Promise<unknown>[] = await store.addInTurns(['a'], ['b']);
    added.push(store.batcher.add(many));
    await expect(store.add('c', 'd')).rejects.toMatchObject({ code: 'inbox_full' });
    for (let n = 0; n < 3; n += 1) {
      store.calls[n]!.succeed();
      await added[n];
      await turn();
    }
  });

  it('Batcher runs no second call if maxCalls is 1, however many items are queued', async () => {
    const store = new SlowStore(1);
    const first = store.add('a');
    await turn();
    const rest = Array.from({ length: 200 }, (_, n) => store.add(`${n}`));
    await turn();
    expect(store.ids).toEqual([['a']]);
    store.calls[0]!.succeed();
    expect(await first).toEqual(['a']);
    await turn();
    expect(store.ids[1]).toHaveLength(200);
    store.calls[1]!.succeed();
    await Promise.all(rest);
  });
});
