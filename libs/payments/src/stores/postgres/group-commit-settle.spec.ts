import { describe, expect, it } from '@jest/globals';
import { TestRuntime } from '../../testing/test-runtime.js';
import type { SettleResult } from '../../inbox/store/inbox-store.js';
import { SettleQueue } from './group-commit.js';
import { completed } from './sql/settle.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const databaseError = (code: string): Error =>
  Object.assign(new Error('no'), { code, severity: 'ERROR' });
const SETTLED: SettleResult = { settled: true, nextDue: false };
const LOST: SettleResult = { settled: false, nextDue: false };

/** A store whose statements end when the test ends them. */
class SlowStore {
  readonly statements: {
    ids: readonly string[];
    resolve: (...results: (SettleResult | null)[]) => void;
    reject: (error: unknown) => void;
  }[] = [];
  readonly runtime = new TestRuntime();
  readonly queue = new SettleQueue(
    (outcomes) =>
      new Promise((resolve, reject) => {
        const ids = outcomes.map(({ lease }) => lease.id);
        this.statements.push({ ids, resolve: (...results) => resolve(results), reject });
      }),
    1000,
    this.runtime,
  );

  settle(id: string): Promise<SettleResult> {
    const lease = { company: 'acme', id, handler: 'book', token: 1, seq: 1 };
    return this.queue.settle(completed(lease));
  }

  get ids(): (readonly string[])[] {
    return this.statements.map(({ ids }) => ids);
  }
}

describe('SettleQueue', () => {
  it('SettleQueue writes one outcome at once, and those queued during its statement together', async () => {
    const store = new SlowStore();
    const first = store.settle('a');
    await turn();
    const rest = ['b', 'c'].map((id) => store.settle(id));
    await turn();
    expect(store.ids).toEqual([['a']]);
    store.statements[0]!.resolve(SETTLED);
    expect(await first).toEqual(SETTLED);
    await turn();
    store.statements[1]!.resolve(SETTLED, LOST);
    expect(await Promise.all(rest)).toEqual([SETTLED, LOST]);
    const later = store.settle('d');
    await turn();
    store.statements[2]!.resolve({ settled: true, nextDue: true });
    expect(await later).toEqual({ settled: true, nextDue: true });
    expect(store.ids).toEqual([['a'], ['b', 'c'], ['d']]);
  });

  it('SettleQueue retries an outcome whose delivery another transaction has locked, and resolves the others', async () => {
    const store = new SlowStore();
    const [a, b] = ['a', 'b'].map((id) => store.settle(id));
    await turn();
    store.statements[0]!.resolve(null, SETTLED);
    expect(await b).toEqual(SETTLED);
    await turn();
    expect(store.statements).toHaveLength(1);
    await store.runtime.advance(10);
    await turn();
    store.statements[1]!.resolve(SETTLED);
    expect(await a).toEqual(SETTLED);
    expect(store.ids).toEqual([['a', 'b'], ['a']]);
  });

  it('SettleQueue rejects an outcome whose delivery another transaction keeps locked', async () => {
    const store = new SlowStore();
    const settling = store.settle('a');
    await turn();
    await store.runtime.advance(1000);
    store.statements[0]!.resolve(null);
    await expect(settling).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await expect(settling).rejects.toThrow(
      /event a to book .* another transaction has locked its row/,
    );
  });

  it('SettleQueue writes each outcome alone if one of them cannot be stored', async () => {
    const store = new SlowStore();
    const all = Promise.allSettled(['a', 'b'].map((id) => store.settle(id)));
    await turn();
    store.statements[0]!.reject(databaseError('22P02'));
    await turn();
    store.statements[1]!.reject(databaseError('22P02'));
    await turn();
    store.statements[2]!.resolve(SETTLED);
    expect(await all).toMatchObject([
      { status: 'rejected' },
      { status: 'fulfilled', value: SETTLED },
    ]);
    expect(store.ids).toEqual([['a', 'b'], ['a'], ['b']]);
  });

  it('SettleQueue rejects the outcomes of a failed statement, and runs the next statement', async () => {
    const store = new SlowStore();
    const failing = Promise.allSettled(['a', 'b'].map((id) => store.settle(id)));
    await turn();
    const next = store.settle('c');
    const failure = databaseError('57P01');
    store.statements[0]!.reject(failure);
    expect(await failing).toMatchObject([{ reason: failure }, { reason: failure }]);
    await turn();
    store.statements[1]!.resolve(SETTLED);
    expect(await next).toEqual(SETTLED);
  });

  it('SettleQueue writes at most 500 outcomes in one statement', async () => {
    const store = new SlowStore();
    for (let n = 0; n <= 500; n += 1) void store.settle(`${n}`);
    await turn();
    expect(store.ids[0]).toHaveLength(500);
    store.statements[0]!.resolve(...Array.from({ length: 500 }, () => SETTLED));
    await turn();
    expect(store.ids[1]).toEqual(['500']);
    store.statements[1]!.resolve(SETTLED);
  });
});
