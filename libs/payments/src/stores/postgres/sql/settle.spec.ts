import { describe, expect, it } from '@jest/globals';
import type { SettleResult } from '../../../inbox/store/inbox-store.js';
import { TestRuntime } from '../../../testing/test-runtime.js';
import type { Parameter, ResultRow } from '../connection/connection-source.js';
import { settlements } from './settle.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const databaseError = (code: string): Error =>
  Object.assign(new Error('no'), { code, severity: 'ERROR' });
const SETTLED: SettleResult = { settled: true, nextDue: false };

/** A database whose statements end when the test ends them. Outcomes are named by the number of their event. */
class SlowDatabase {
  readonly statements: {
    events: readonly number[];
    /** Takes the positions of outcomes, from 1. */
    resolve: (row: { settled?: number[]; next?: number[]; locked?: number[] }) => void;
    reject: (error: unknown) => void;
  }[] = [];
  readonly runtime = new TestRuntime();
  readonly #settle = settlements(this, 'payments', 1000, this.runtime);

  query(_statement: unknown, values: readonly Parameter[] = []): Promise<ResultRow[]> {
    const [events] = values as [number[]];
    const text = (positions?: number[]) => positions && `{${positions.join()}}`;
    return new Promise((resolve, reject) => {
      this.statements.push({
        events,
        resolve: ({ settled, next, locked }) =>
          resolve([
            {
              o_settled: text(settled) ?? null,
              o_next: text(next) ?? null,
              o_locked: text(locked) ?? null,
            },
          ]),
        reject,
      });
    });
  }

  settle(event: number): Promise<SettleResult> {
    const lease = { company: 'acme', id: `${event}`, handler: 'book', token: 1, seq: event };
    return this.#settle({ lease, kind: 'done', error: null, dueInMs: null });
  }

  get events(): (readonly number[])[] {
    return this.statements.map(({ events }) => events);
  }
}

describe('Settlements', () => {
  it('Settlements writes the first outcome immediately, and writes the outcomes that arrive meanwhile together', async () => {
    const database = new SlowDatabase();
    const first = database.settle(1);
    await turn();
    const rest = [2, 3].map((event) => database.settle(event));
    await turn();
    expect(database.events).toEqual([[1]]);
    database.statements[0]!.resolve({ settled: [1], next: [1] });
    expect(await first).toEqual({ settled: true, nextDue: true });
    await turn();
    database.statements[1]!.resolve({ settled: [1] });
    expect(await Promise.all(rest)).toEqual([SETTLED, { settled: false, nextDue: false }]);
    expect(database.events).toEqual([[1], [2, 3]]);
  });

  it('Settlements retries an outcome whose delivery another transaction has locked, and resolves the other outcomes', async () => {
    const database = new SlowDatabase();
    const [one, two] = [1, 2].map((event) => database.settle(event));
    await turn();
    database.statements[0]!.resolve({ settled: [2], locked: [1] });
    expect(await two).toEqual(SETTLED);
    await turn();
    expect(database.statements).toHaveLength(1);
    await database.runtime.advance(10);
    await turn();
    database.statements[1]!.resolve({ settled: [1] });
    expect(await one).toEqual(SETTLED);
    expect(database.events).toEqual([[1, 2], [1]]);
  });

  it('Settlements rejects an outcome whose delivery another transaction keeps locked', async () => {
    const database = new SlowDatabase();
    const settling = database.settle(1);
    await turn();
    await database.runtime.advance(1000);
    database.statements[0]!.resolve({ locked: [1] });
    await expect(settling).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await expect(settling).rejects.toThrow(
      /event 1 to book .* another transaction has locked its row/,
    );
  });

  it('outcomes are written one by one if one of them cannot be stored', async () => {
    const database = new SlowDatabase();
    const all = Promise.allSettled([1, 2].map((event) => database.settle(event)));
    await turn();
    database.statements[0]!.reject(databaseError('22P02'));
    await turn();
    database.statements[1]!.reject(databaseError('22P02'));
    await turn();
    database.statements[2]!.resolve({ settled: [1] });
    expect(await all).toMatchObject([
      { status: 'rejected' },
      { status: 'fulfilled', value: SETTLED },
    ]);
    expect(database.events).toEqual([[1, 2], [1], [2]]);
  });
});
