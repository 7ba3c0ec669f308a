import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ToThread } from '../../libs/payments/dist/stores/sqlite/thread/messages.js';
import { incoming, SqliteHarness } from '../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
/** The names of the operations in each message to a thread. */
let sent: () => string[][];
beforeEach(() => {
  harness = new SqliteHarness();
  const post = jest.spyOn(Worker.prototype, 'postMessage');
  sent = () =>
    post.mock.calls.flatMap(([message]) => {
      const toThread = message as ToThread;
      const names = toThread.kind === 'calls' ? toThread.calls.map(({ name }) => name) : [];
      // A store sends `sync` when it opens.
      return names.length === 0 || names[0] === 'sync' ? [] : [names];
    });
});
afterEach(async () => {
  await harness.dispose();
  jest.restoreAllMocks();
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('messages of a SQLite inbox to its thread', () => {
  it('the receives of one turn of the event loop are sent in one message', async () => {
    const store = await harness.open();
    const receives: Promise<unknown>[] = [];
    for (let count = 0; count < 3; count += 1) {
      receives.push(store.receive([incoming()]));
      await Promise.resolve();
      expect(sent()).toEqual([]);
    }
    await turn();
    expect(sent()).toEqual([['receive', 'receive', 'receive']]);
    await Promise.all(receives);
  });

  it('16 receives are sent before the turn of the event loop ends', async () => {
    const store = await harness.open();
    const receives = Array.from({ length: 20 }, () => store.receive([incoming()]));
    await Promise.all(receives);
    expect(sent().map(({ length }) => length)).toEqual([20]);
    const later: Promise<unknown>[] = [];
    for (let count = 0; count < 20; count += 1) {
      later.push(store.receive([incoming()]));
      await Promise.resolve();
    }
    expect(sent().map(({ length }) => length)).toEqual([20, 16]);
    await Promise.all(later);
    expect(sent().map(({ length }) => length)).toEqual([20, 16, 4]);
  });

  it('an operation other than receive is sent at once, with the receives before it', async () => {
    const store = await harness.open();
    const received = store.receive([incoming({ id: 'a' })]);
    const claimed = store.claim({ worker: 'w', wanted: [{ handler: 'book', limit: 1 }] });
    await Promise.resolve();
    expect(sent()).toEqual([['receive', 'claim']]);
    await Promise.all([received, claimed]);
  });
});
