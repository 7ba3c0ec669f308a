import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runBatch } from './batch.js';
import type { SqliteConnection } from './connection.js';
import type { IncomingEvent, StoreReceipt } from '../../../inbox/store/inbox-store.js';
import type { Call } from './messages.js';

const BUSY_TIMEOUT_MS = 100;

let inbox: SqliteDatabase;
let connection: SqliteConnection;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
  ({ connection } = inbox);
});
afterEach(() => inbox.close());

const call = (name: Call['name'], ...args: unknown[]): Call => ({ name, args });

/** Runs calls in one transaction. */
const run = async (calls: readonly Call[]) =>
  (await runBatch(connection, calls, inbox.times, BUSY_TIMEOUT_MS)).outcomes;

const receiveCall = (id: string, event: Partial<IncomingEvent> = {}): Call =>
  call('receive', [inbox.event({ id, ...event })]);

const eventsOf = ({ args }: Call) => args[0] as IncomingEvent[];

const stored = () =>
  connection.all<{ id: string }>('SELECT id FROM payments_inbox_event').map(({ id }) => id);

describe('a batch', () => {
  it('a batch stores the calls that succeed if another call of the batch fails', async () => {
    const calls = [
      receiveCall('a'),
      receiveCall('b', { handlers: ['twice', 'twice'] }),
      receiveCall('c'),
    ];
    const responses = await run(calls);
    expect(responses.map((response) => 'failure' in response)).toEqual([false, true, false]);
    expect(stored()).toEqual(['a', 'c']);
  });

  it('a batch runs each call with the workers, pauses and catalog version that earlier calls have changed', async () => {
    const assign = { workerId: 'w', handlers: ['book'] };
    const patterns = [{ name: 'book', patterns: ['*'] }];
    const responses = await run([
      receiveCall('no such worker', { assign }),
      call('register', { id: 'w', leaseMs: 1000, handlers: patterns }),
      receiveCall('old version', { assign }),
      receiveCall('assigned', { assign, catalogVersion: 1 }),
      call('pause', 'book', true),
      receiveCall('paused', { assign, catalogVersion: 1 }),
      call('pause', 'book', false),
      call('retire', 'w', 0),
      receiveCall('retired', { assign, catalogVersion: 1 }),
    ]);
    const receipts = responses.flatMap((response) =>
      'value' in response && Array.isArray(response.value)
        ? (response.value as StoreReceipt[])
        : [],
    );
    expect(receipts.map(({ id, outcome, claimed }) => [id, outcome, claimed.length])).toEqual([
      ['no such worker', 'stored', 0],
      ['old version', 'outdated', 0],
      ['assigned', 'stored', 1],
      ['paused', 'stored', 0],
      ['retired', 'stored', 0],
    ]);
  });

  it('a batch responds to a registration with the catalog version that the registration creates', async () => {
    const handlers = [{ name: 'book', patterns: ['*'] }];
    const register = call('register', { id: 'w', leaseMs: 1000, handlers });
    const responses = await run([receiveCall('a'), register]);
    expect(responses[1]).toMatchObject({ value: { version: 1, handlers: [{ name: 'book' }] } });
  });

  it('a batch wakes the workers if one of its calls made a delivery due, even if a later call makes none due', async () => {
    const [id, next] = ['a', 'b'].map((name) => inbox.receive({ id: name, orderingKey: 't' }));
    inbox.receive({ id: 'other', handlers: ['mail'] });
    const request = { workerId: inbox.worker(), wanted: [{ handler: 'mail', limit: 1 }] };
    const [lease] = inbox.store().claim(request);
    const skip = call('skip', [{ company: 'acme', id, handlers: ['book'] }]);
    const batch = [skip, call('complete', lease)];
    expect(await runBatch(connection, batch, inbox.times, BUSY_TIMEOUT_MS)).toMatchObject({
      outcomes: [{ value: 1 }, { value: { settled: true, nextDue: false } }],
      wakes: true,
    });
    expect(inbox.claim(request.workerId).map((claimed) => claimed.id)).toEqual([next]);
  });

  it('a batch keeps no cached value after its end, because another process may change the value', async () => {
    inbox.receive();
    const request = { workerId: inbox.worker(), wanted: [{ handler: 'mail', limit: 1 }] };
    await run([call('claim', request)]);
    connection.exec("INSERT INTO payments_inbox_pause VALUES ('book', '{}', 0, NULL)");
    expect(inbox.store().nextDueInMs(['book'])).toBeNull();
  });

  it('a batch whose only call fails stores nothing, and the next batch succeeds', async () => {
    const [a, b] = [receiveCall('a'), receiveCall('b', { handlers: ['twice', 'twice'] })];
    const both = { ...a, args: [[...eventsOf(a), ...eventsOf(b)]] };
    expect(await run([both])).toEqual([
      { failure: expect.objectContaining({ code: 'inbox_unavailable' }) },
    ]);
    expect(stored()).toEqual([]);
    await run([receiveCall('c')]);
    expect(stored()).toEqual(['c']);
  });

  it('a batch on a full disk rejects with an error that names the fix and not the body, and the next batch succeeds', async () => {
    const { page_count } = connection.get<{ page_count: number }>('PRAGMA page_count')!;
    connection.exec(`PRAGMA max_page_count = ${page_count + 2}`);
    const raw = Buffer.alloc(50_000, 'card 4111111111111111 ');
    const responses = await run([receiveCall('a'), receiveCall('b', { raw })]);
    const failures = responses.flatMap((response) =>
      'failure' in response ? [response.failure] : [],
    );
    expect(failures.length).toBeGreaterThan(0);
    for (const { code, message } of failures) {
      expect(code).toBe('inbox_unavailable');
      expect(message).toContain('Free some space');
      expect(message).not.toContain('4111');
    }
    expect(stored()).toHaveLength(2 - failures.length);
    connection.exec('PRAGMA max_page_count = 1073741823');
    const [again] = await run([receiveCall('b', { raw })]);
    expect(again).toMatchObject({ value: [{ outcome: 'stored', id: 'b' }] });
  });
});
