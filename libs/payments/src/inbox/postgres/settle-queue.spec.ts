import { describe, expect, it } from '@jest/globals';
import { TestRuntime } from '../../testing/test-runtime.js';
import type { SettleResult } from '../store/inbox-store.js';
import { SettleQueue } from './settle-queue.js';
import { completed } from './sql/settle.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const databaseError = (code: string): Error =>
  Object.assign(new Error('no'), { code, severity: 'ERROR' });
const YES: SettleResult = { settled: true, nextDue: false };
const NO: SettleResult = { settled: false, nextDue: false };

/** A store whose statements end when the test decides it. */
class SlowStore {
  readonly statements: {
    ids: readonly string[];
    answer: (...settlements: (SettleResult | null)[]) => void;
    fail: (error: unknown) => void;
  }[] = [];
  readonly runtime = new TestRuntime();
  readonly queue = new SettleQueue(
    (all) =>
      new Promise((resolve, fail) => {
        const ids = all.map(({ lease }) => lease.id);
        this.statements.push({ ids, answer: (...answer) => resolve(answer), fail });
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
  it('settles one that comes alone at once, and those that come meanwhile together', async () => {
    const store = new SlowStore();
    const first = store.settle('a');
    await turn();
    const rest = ['b', 'c'].map((id) => store.settle(id));
    await turn();
    expect(store.ids).toEqual([['a']]);
    store.statements[0]!.answer(YES);
    expect(await first).toEqual(YES);
    await turn();
    store.statements[1]!.answer(YES, NO);
    expect(await Promise.all(rest)).toEqual([YES, NO]);
    const later = store.settle('d');
    await turn();
    store.statements[2]!.answer({ settled: true, nextDue: true });
    expect(await later).toEqual({ settled: true, nextDue: true });
    expect(store.ids).toEqual([['a'], ['b', 'c'], ['d']]);
  });

  it('tries one again that another transaction holds, and the others do not wait for it', async () => {
    const store = new SlowStore();
    const [a, b] = ['a', 'b'].map((id) => store.settle(id));
    await turn();
    store.statements[0]!.answer(null, YES);
    expect(await b).toEqual(YES);
    await turn();
    expect(store.statements).toHaveLength(1);
    await store.runtime.advance(10);
    await turn();
    store.statements[1]!.answer(YES);
    expect(await a).toEqual(YES);
    expect(store.ids).toEqual([['a', 'b'], ['a']]);
  });

  it('rejects one that another transaction holds for too long', async () => {
    const store = new SlowStore();
    const settling = store.settle('a');
    await turn();
    await store.runtime.advance(1000);
    store.statements[0]!.answer(null);
    await expect(settling).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await expect(settling).rejects.toThrow(/event a to book .* another transaction holds its row/);
  });

  it('settles each alone if the values of one cannot be stored', async () => {
    const store = new SlowStore();
    const all = Promise.allSettled(['a', 'b'].map((id) => store.settle(id)));
    await turn();
    store.statements[0]!.fail(databaseError('22P02'));
    await turn();
    store.statements[1]!.fail(databaseError('22P02'));
    await turn();
    store.statements[2]!.answer(YES);
    expect(await all).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: YES }]);
    expect(store.ids).toEqual([['a', 'b'], ['a'], ['b']]);
  });

  it('rejects those of a statement that failed, and goes on with the next', async () => {
    const store = new SlowStore();
    const failing = Promise.allSettled(['a', 'b'].map((id) => store.settle(id)));
    await turn();
    const next = store.settle('c');
    const failure = databaseError('57P01');
    store.statements[0]!.fail(failure);
    expect(await failing).toMatchObject([{ reason: failure }, { reason: failure }]);
    await turn();
    store.statements[1]!.answer(YES);
    expect(await next).toEqual(YES);
  });

  it('bounds a statement', async () => {
    const store = new SlowStore();
    for (let n = 0; n <= 500; n += 1) void store.settle(`${n}`);
    await turn();
    expect(store.ids[0]).toHaveLength(500);
    store.statements[0]!.answer(...Array.from({ length: 500 }, () => YES));
    await turn();
    expect(store.ids[1]).toEqual(['500']);
    store.statements[1]!.answer(YES);
  });
});
