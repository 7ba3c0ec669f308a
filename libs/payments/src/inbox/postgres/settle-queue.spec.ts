import { describe, expect, it } from '@jest/globals';
import { SettlementQueue } from './settlement.queue.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const databaseError = (code: string): Error =>
  Object.assign(new Error('no'), { code, severity: 'ERROR' });

/** A store whose statements end when the test says so. */
class SlowStore {
  readonly together: {
    items: readonly string[];
    settle: (...places: number[]) => void;
    fail: (error: unknown) => void;
  }[] = [];
  readonly alone: { item: string; settle: (settled: boolean) => void }[] = [];
  readonly queue = new SettlementQueue<string>(
    (items) =>
      new Promise((resolve, fail) => {
        this.together.push({ items, settle: (...places) => resolve(new Set(places)), fail });
      }),
    (item) => new Promise((settle) => this.alone.push({ item, settle })),
  );
}

describe('group commit of settlements', () => {
  it('settles what comes alone at once, and together what comes meanwhile', async () => {
    const { queue, together } = new SlowStore();
    const first = queue.settle('a');
    await turn();
    const rest = ['b', 'c'].map((item) => queue.settle(item));
    await turn();
    expect(together.map(({ items }) => items)).toEqual([['a']]);
    together[0]!.settle(0);
    expect(await first).toBe(true);
    await turn();
    expect(together[1]?.items).toEqual(['b', 'c']);
    together[1]!.settle(0, 1);
    expect(await Promise.all(rest)).toEqual([true, true]);
    const later = queue.settle('d');
    await turn();
    expect(together[2]?.items).toEqual(['d']);
    together[2]!.settle(0);
    expect(await later).toBe(true);
  });

  it('settles what comes in one turn together', async () => {
    const { queue, together } = new SlowStore();
    const all = ['a', 'b', 'c'].map((item) => queue.settle(item));
    await turn();
    expect(together.map(({ items }) => items)).toEqual([['a', 'b', 'c']]);
    together[0]!.settle(0, 1, 2);
    expect(await Promise.all(all)).toEqual([true, true, true]);
  });

  it('asks alone for what could not be settled with the others, and has nobody wait for it', async () => {
    const { queue, together, alone } = new SlowStore();
    const [a, b, c] = ['a', 'b', 'c'].map((item) => queue.settle(item));
    await turn();
    together[0]!.settle(1);
    expect(await b).toBe(true);
    expect(alone.map(({ item }) => item)).toEqual(['a', 'c']);
    const d = queue.settle('d');
    await turn();
    together[1]!.settle(0);
    expect(await d).toBe(true);
    alone[0]!.settle(false);
    alone[1]!.settle(true);
    expect(await Promise.all([a, c])).toEqual([false, true]);
  });

  it('asks for each alone where the values of one cannot be stored', async () => {
    const { queue, together, alone } = new SlowStore();
    const all = ['a', 'b'].map((item) => queue.settle(item));
    await turn();
    together[0]!.fail(databaseError('22P02'));
    await turn();
    expect(alone.map(({ item }) => item)).toEqual(['a', 'b']);
    for (const { settle } of alone) settle(true);
    expect(await Promise.all(all)).toEqual([true, true]);
  });

  it('fails those of a statement that failed, and goes on with the next', async () => {
    const { queue, together, alone } = new SlowStore();
    const failing = Promise.allSettled(['a', 'b'].map((item) => queue.settle(item)));
    await turn();
    const next = queue.settle('c');
    const failure = databaseError('57P01');
    together[0]!.fail(failure);
    expect((await failing).map((one) => one.status === 'rejected' && one.reason)).toEqual([
      failure,
      failure,
    ]);
    await turn();
    together[1]!.settle(0);
    expect(await next).toBe(true);
    expect(alone).toEqual([]);
  });

  it('bounds a statement', async () => {
    const { queue, together } = new SlowStore();
    void Array.from({ length: 501 }, (_, n) => queue.settle(`${n}`));
    await turn();
    expect(together[0]!.items).toHaveLength(500);
    together[0]!.settle(...Array.from({ length: 500 }, (_, place) => place));
    await turn();
    expect(together[1]!.items).toEqual(['500']);
    together[1]!.settle(0);
  });
});
