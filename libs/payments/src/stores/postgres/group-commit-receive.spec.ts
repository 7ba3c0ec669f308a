import { describe, expect, it } from '@jest/globals';
import type { IncomingEvent, StoreReceipt } from '../../inbox/store/inbox-store.js';
import { ReceiveQueue } from './group-commit.js';

const event = (id: string, bytes = 10): IncomingEvent => ({
  company: 'default',
  id,
  eventType: 'transaction.completed',
  occurredAt: new Date(0),
  orderingKey: null,
  raw: Buffer.alloc(bytes),
  headers: {},
  oncePerTransaction: false,
  handlers: [],
  catalogVersion: 0,
  assign: null,
  stale: false,
  source: 'webhook',
  reference: null,
  summary: null,
  fulfils: false,
});

const receiptOf = (id: string): StoreReceipt => ({
  outcome: 'stored',
  id,
  claimed: [],
  pending: true,
  fulfilled: [],
});

/** A store whose statements end when the test ends them. */
class SlowStore {
  readonly statements: {
    ids: string[];
    succeed: () => void;
    fail: (error: unknown) => void;
  }[] = [];
  readonly queue = new ReceiveQueue(
    (events) =>
      new Promise<StoreReceipt[]>((resolve, reject) => {
        const ids = events.map(({ id }) => id);
        const receipts = ids.map(receiptOf);
        this.statements.push({ ids, succeed: () => resolve(receipts), fail: reject });
      }),
  );

  /** Starts each receive in another turn of the event loop. */
  async receiveInTurns(...receives: string[][]): Promise<Promise<string[]>[]> {
    const received: Promise<string[]>[] = [];
    for (const ids of receives) {
      received.push(this.receive(...ids));
      await turn();
    }
    return received;
  }

  receive(...ids: string[]): Promise<string[]> {
    return this.queue
      .receive(ids.map((id) => event(id)))
      .then((receipts) => receipts.map(({ id }) => id));
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const databaseError = (code: string): Error =>
  Object.assign(new Error('no'), { code, severity: 'ERROR' });

describe('ReceiveQueue', () => {
  it('ReceiveQueue stores two receives at once, and those queued during their statements together', async () => {
    const store = new SlowStore();
    const received = await store.receiveInTurns(['a'], ['b'], ['c', 'd'], ['e']);
    expect(store.statements.map(({ ids }) => ids)).toEqual([['a'], ['b']]);
    store.statements[0]!.succeed();
    expect(await received[0]).toEqual(['a']);
    await turn();
    expect(store.statements[2]?.ids).toEqual(['c', 'd', 'e']);
    for (const { succeed } of store.statements) succeed();
    expect(await Promise.all(received)).toEqual([['a'], ['b'], ['c', 'd'], ['e']]);
    await store.queue.drained();
  });

  it('ReceiveQueue stores the receives of one turn of the event loop together', async () => {
    const store = new SlowStore();
    const received = [['a'], ['b', 'c']].map((ids) => store.receive(...ids));
    await turn();
    expect(store.statements.map(({ ids }) => ids)).toEqual([['a', 'b', 'c']]);
    store.statements[0]!.succeed();
    expect(await Promise.all(received)).toEqual([['a'], ['b', 'c']]);
  });

  it('ReceiveQueue starts a second statement if the first one is small, or if many events are queued', async () => {
    const store = new SlowStore();
    const many = Array.from({ length: 40 }, (_, n) => store.receive(`a${n}`));
    await turn();
    const queued = Array.from({ length: 99 }, (_, n) => store.receive(`b${n}`));
    await turn();
    expect(store.statements.map(({ ids }) => ids.length)).toEqual([40]);
    queued.push(store.receive('b99'));
    await turn();
    expect(store.statements.map(({ ids }) => ids.length)).toEqual([40, 100]);
    for (const { succeed } of store.statements.splice(0)) succeed();
    const stored = (await Promise.all([...many, ...queued])).flat();
    expect(stored).toEqual([...many.map((_, n) => `a${n}`), ...queued.map((_, n) => `b${n}`)]);
    const [few, next] = await store.receiveInTurns(['c'], ['d']);
    expect(store.statements.map(({ ids }) => ids)).toEqual([['c'], ['d']]);
    for (const { succeed } of store.statements) succeed();
    expect(await Promise.all([few, next])).toEqual([['c'], ['d']]);
  });

  it('drained() resolves after the queued receives are stored', async () => {
    const store = new SlowStore();
    let drained = false;
    const received = store.receive('a');
    const draining = store.queue.drained().then(() => (drained = true));
    await turn();
    expect(drained).toBe(false);
    store.statements[0]!.succeed();
    await Promise.all([received, draining]);
  });

  it('ReceiveQueue limits a statement by events and bytes, and stores a larger receive alone', async () => {
    const store = new SlowStore();
    const sizes = [400, 200, 900, 1];
    const receives = sizes.map((count, n) =>
      store.receive(...Array.from({ length: count }, (_, i) => `${n}-${i}`)),
    );
    const large = [3e6, 3e6].map((bytes, n) => store.queue.receive([event(`large ${n}`, bytes)]));
    await turn();
    for (let n = 0; n < store.statements.length; n += 1) {
      store.statements[n]!.succeed();
      await turn();
      // The next statement starts in another turn.
      await turn();
    }
    await Promise.all([...receives, ...large]);
    expect(store.statements.map(({ ids }) => ids.length)).toEqual([400, 200, 900, 2, 1]);
  });

  it('ReceiveQueue rejects all queued receives if the database is not reachable, and stores later ones', async () => {
    const store = new SlowStore();
    const received = await store.receiveInTurns(['a'], ['b'], ['c'], ['d']);
    const failed = Promise.allSettled(received);
    store.statements[0]!.fail(new Error('connect ECONNREFUSED'));
    store.statements[1]!.fail(new Error('connect ECONNREFUSED'));
    expect((await failed).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    const [next] = await store.receiveInTurns(['e']);
    store.statements.at(-1)!.succeed();
    expect(await next).toEqual(['e']);
  });

  it('ReceiveQueue stores receives one by one if one of them cannot be stored', async () => {
    const store = new SlowStore();
    const received = await store.receiveInTurns(['a'], ['b'], ['bad'], ['good']);
    const results = Promise.allSettled(received);
    store.statements[0]!.succeed();
    await received[0];
    store.statements[1]!.succeed();
    await turn();
    expect(store.statements[2]?.ids).toEqual(['bad', 'good']);
    store.statements[2]!.fail(databaseError('22021'));
    await turn();
    expect(store.statements[3]?.ids).toEqual(['bad']);
    store.statements[3]!.fail(databaseError('22021'));
    await turn();
    store.statements[4]!.succeed();
    expect((await results).map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
  });

  it('ReceiveQueue rejects a receive with inbox_full if 20,000 events are queued', async () => {
    const store = new SlowStore();
    const many = Array.from({ length: 19_999 }, (_, n) => event(`${n}`));
    const received: Promise<unknown>[] = await store.receiveInTurns(['a'], ['b']);
    received.push(store.queue.receive(many));
    await expect(store.receive('c', 'd')).rejects.toMatchObject({ code: 'inbox_full' });
    for (let n = 0; n < 3; n += 1) {
      store.statements[n]!.succeed();
      await received[n];
      await turn();
    }
  });
});
