import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ToThread } from '../../../libs/payments/dist/stores/sqlite/thread/messages.js';
import type { SqliteStore } from '../../../libs/payments/dist/stores/sqlite/sqlite-store.js';
import { incoming, SqliteHarness } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
let post: jest.SpiedFunction<Worker['postMessage']>;
beforeEach(() => {
  harness = new SqliteHarness();
  post = jest.spyOn(Worker.prototype, 'postMessage');
});
afterEach(async () => {
  await harness.dispose();
  jest.restoreAllMocks();
});

/** The names of the operations in each message to the thread. */
const sent = (): string[][] =>
  post.mock.calls.flatMap(([message]) => {
    const toThread = message as ToThread;
    return toThread.kind === 'run' ? [toThread.calls.map(({ name }) => name)] : [];
  });

/** A store whose thread runs no operation. */
async function openIdle(): Promise<SqliteStore> {
  const store = await harness.open();
  await store.pause('book', false);
  post.mockClear();
  return store;
}

/** Makes the next transaction of the thread wait. Returns a function that ends the wait. */
function blockWrites(): () => void {
  const other = harness.connect();
  other.exec('BEGIN IMMEDIATE');
  return () => other.exec('ROLLBACK');
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('messages of a SQLite inbox to its thread', () => {
  it('the receive() calls of one turn of the event loop are sent to the thread in one message', async () => {
    const store = await openIdle();
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

  it('the writes that are requested while the thread runs a transaction are sent to the thread in the next message', async () => {
    const store = await openIdle();
    const unblockWrites = blockWrites();
    const first = store.receive([incoming()]);
    await turn();
    const wanted = [{ handler: 'book', limit: 1 }];
    const others = [store.receive([incoming()]), store.claim({ workerId: 'w', wanted })];
    await turn();
    expect(sent()).toEqual([['receive']]);
    unblockWrites();
    await Promise.all([first, ...others]);
    expect(sent()).toEqual([['receive'], ['receive', 'claim']]);
  });

  it('a read is sent to the thread immediately, even while the thread runs a transaction', async () => {
    const store = await openIdle();
    const unblockWrites = blockWrites();
    const received = store.receive([incoming()]);
    await turn();
    const counted = store.stats();
    await Promise.resolve();
    expect(sent()).toEqual([['receive'], ['stats']]);
    unblockWrites();
    await Promise.all([received, counted]);
  });

  it('a commit sends one call to the thread, which makes the commit durable', async () => {
    const store = await openIdle();
    await store.receive([incoming(), incoming()]);
    const leases = await (await harness.claimer(store))(2);
    const before = sent().length;
    await Promise.all(leases.map((lease) => store.commit(lease, () => {})));
    expect(sent().slice(before).flat()).toEqual(['sync', 'sync']);
  });
});
