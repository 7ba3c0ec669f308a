import { describe, expect, it } from '@jest/globals';
import type { IncomingEvent, StoreReceipt } from '../store.contract.js';
import { ReceiptQueue } from './receipt.queue.js';

const event = (id: string, bytes = 10): IncomingEvent => ({
  company: 'default',
  id,
  dedupeKey: id,
  eventType: 'transaction.completed',
  occurredAt: new Date(0),
  orderingKey: null,
  raw: Buffer.alloc(bytes),
  headers: {},
  handlers: [],
});

/** A store whose statements end when the test says so. */
class SlowStore {
  readonly statements: {
    ids: string[];
    succeed: () => void;
    fail: (error: unknown) => void;
  }[] = [];
  readonly queue = new ReceiptQueue(
    (events) =>
      new Promise<StoreReceipt[]>((resolve, reject) => {
        const ids = events.map(({ id }) => id);
        const receipts = ids.map((id): StoreReceipt => ({ outcome: 'stored', id }));
        this.statements.push({ ids, succeed: () => resolve(receipts), fail: reject });
      }),
  );

  receive(...ids: string[]): Promise<string[]> {
    return this.queue
      .receive(ids.map((id) => event(id)))
      .then((receipts) => receipts.map(({ id }) => id));
  }
}

const databaseError = (code: string): Error =>
  Object.assign(new Error('no'), { code, severity: 'ERROR' });

describe('group commit', () => {
  it('stores what comes alone at once, and together what comes meanwhile', async () => {
    const store = new SlowStore();
    const received = [['a'], ['b'], ['c', 'd'], ['e']].map((ids) => store.receive(...ids));
    expect(store.statements.map(({ ids }) => ids)).toEqual([['a'], ['b']]);
    store.statements[0]!.succeed();
    expect(await received[0]).toEqual(['a']);
    expect(store.statements[2]?.ids).toEqual(['c', 'd', 'e']);
    for (const { succeed } of store.statements) succeed();
    expect(await Promise.all(received)).toEqual([['a'], ['b'], ['c', 'd'], ['e']]);
    await store.queue.drained();
  });

  it('bounds a statement by events and by bytes, and takes a receive that is larger alone', async () => {
    const store = new SlowStore();
    const sizes = [1, 1, 400, 200, 900, 1];
    const receives = sizes.map((count, n) =>
      store.receive(...Array.from({ length: count }, (_, i) => `${n}-${i}`)),
    );
    const large = [3e6, 3e6].map((bytes, n) => store.queue.receive([event(`large ${n}`, bytes)]));
    for (let n = 0; n < store.statements.length; n += 1) {
      store.statements[n]!.succeed();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all([...receives, ...large]);
    expect(store.statements.map(({ ids }) => ids.length)).toEqual([1, 1, 400, 200, 900, 2, 1]);
  });

  it('rejects all that waits when the database is out of reach, and goes on afterwards', async () => {
    const store = new SlowStore();
    const received = ['a', 'b', 'c', 'd'].map((id) => store.receive(id));
    const failed = Promise.allSettled(received);
    store.statements[0]!.fail(new Error('connect ECONNREFUSED'));
    store.statements[1]!.fail(new Error('connect ECONNREFUSED'));
    expect((await failed).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    const next = store.receive('e');
    store.statements.at(-1)!.succeed();
    expect(await next).toEqual(['e']);
  });

  it('stores those one by one that were refused together', async () => {
    const store = new SlowStore();
    const received = ['a', 'b', 'bad', 'good'].map((id) => store.receive(id));
    const settled = Promise.allSettled(received);
    store.statements[0]!.succeed();
    await received[0];
    store.statements[1]!.succeed();
    expect(store.statements[2]?.ids).toEqual(['bad', 'good']);
    store.statements[2]!.fail(databaseError('22021'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(store.statements[3]?.ids).toEqual(['bad']);
    store.statements[3]!.fail(databaseError('22021'));
    await new Promise((resolve) => setImmediate(resolve));
    store.statements[4]!.succeed();
    expect((await settled).map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
  });

  it('is full where more waits than memory should hold', async () => {
    const store = new SlowStore();
    const many = Array.from({ length: 19_999 }, (_, n) => event(`${n}`));
    const received = [store.receive('a'), store.receive('b'), store.queue.receive(many)];
    await expect(store.receive('c', 'd')).rejects.toMatchObject({ code: 'inbox_full' });
    for (let n = 0; n < 3; n += 1) {
      store.statements[n]!.succeed();
      await received[n];
    }
  });
});
