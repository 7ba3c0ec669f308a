import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runBatch, takeBatch } from './batch.js';
import type { SqliteConnection } from './connection.js';
import { OPERATIONS } from './operations.js';
import type { Call } from './operations.js';
import type { EventMessage, ReceiptMessage } from '../sql/receive.js';

const SETTINGS = { busyTimeoutMs: 100, slowCommitMs: 0 };

let inbox: SqliteDatabase;
let connection: SqliteConnection;
let number = 0;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
  ({ connection } = inbox);
});
afterEach(() => inbox.close());

function receiveCall(id: string, event: Partial<EventMessage> = {}): Call {
  number += 1;
  const request = { events: [inbox.event({ id, ...event })] };
  return { number, name: 'receive', request, times: inbox.times };
}

const eventsOf = ({ request }: Call) => (request as { events: EventMessage[] }).events;

const stored = () =>
  connection.all<{ id: string }>('SELECT id FROM payments_inbox_event').map(({ id }) => id);

describe('a batch', () => {
  it('stores the calls that succeed if another one fails', () => {
    const calls = [
      receiveCall('a'),
      receiveCall('b', { handlers: ['twice', 'twice'] }),
      receiveCall('c'),
    ];
    const answers = runBatch(connection, calls, SETTINGS);
    expect(answers.map((answer) => 'failure' in answer)).toEqual([false, true, false]);
    expect(stored()).toEqual(['a', 'c']);
  });

  it('sees what its own calls change: workers, pauses and the version of the catalog', () => {
    const assign = { worker: 'w', handlers: ['book'] };
    const call = (name: Call['name'], request: unknown): Call => {
      number += 1;
      return { number, name, request, times: inbox.times };
    };
    const patterns = [{ name: 'book', patterns: ['*'] }];
    const answers = runBatch(
      connection,
      [
        receiveCall('no such worker', { assign }),
        call('register', { id: 'w', leaseMs: 1000, handlers: patterns }),
        receiveCall('old version', { assign }),
        receiveCall('assigned', { assign, catalogVersion: 1 }),
        call('pause', { handler: 'book', paused: true }),
        receiveCall('paused', { assign, catalogVersion: 1 }),
        call('pause', { handler: 'book', paused: false }),
        call('retire', { worker: 'w', graceMs: 0 }),
        receiveCall('retired', { assign, catalogVersion: 1 }),
      ],
      SETTINGS,
    );
    const receipts = answers.flatMap((answer) =>
      'value' in answer && Array.isArray(answer.value) ? (answer.value as ReceiptMessage[]) : [],
    );
    expect(receipts.map(({ id, outcome, claimed }) => [id, outcome, claimed.length])).toEqual([
      ['no such worker', 'stored', 0],
      ['old version', 'outdated', 0],
      ['assigned', 'stored', 1],
      ['paused', 'stored', 0],
      ['retired', 'stored', 0],
    ]);
  });

  it('answers a registration with the version that it makes, after an event of the version before it', () => {
    const handlers = [{ name: 'book', patterns: ['*'] }];
    const request = { id: 'w', leaseMs: 1000, handlers };
    const register: Call = { number: 1, name: 'register', request, times: inbox.times };
    const answers = runBatch(connection, [receiveCall('a'), register], SETTINGS);
    expect(answers[1]).toMatchObject({ value: { version: 1, handlers: [{ name: 'book' }] } });
  });

  it('keeps nothing for later reads, because another process may have changed it', () => {
    inbox.receive();
    const request = { worker: inbox.worker(), wanted: [{ handler: 'mail', limit: 1 }] };
    runBatch(connection, [{ number: 1, name: 'claim', request, times: inbox.times }], SETTINGS);
    connection.exec("INSERT INTO payments_inbox_pause VALUES ('book')");
    expect(OPERATIONS.nextDue(connection, { handlers: ['book'] }, inbox.times)).toBeNull();
  });

  it('stores nothing of a single call that fails, and works afterwards', () => {
    const [a, b] = [receiveCall('a'), receiveCall('b', { handlers: ['twice', 'twice'] })];
    const both = { ...a, request: { events: [...eventsOf(a), ...eventsOf(b)] } };
    expect(runBatch(connection, [both], SETTINGS)).toEqual([
      { number: both.number, failure: expect.objectContaining({ code: 'inbox_unavailable' }) },
    ]);
    expect(stored()).toEqual([]);
    runBatch(connection, [receiveCall('c')], SETTINGS);
    expect(stored()).toEqual(['c']);
  });

  it('answers every call if the disk is full, with the fix and without the body, and works afterwards', () => {
    const { page_count } = connection.get<{ page_count: number }>('PRAGMA page_count')!;
    connection.exec(`PRAGMA max_page_count = ${page_count + 2}`);
    const raw = Buffer.alloc(50_000, 'card 4111111111111111 ');
    const answers = runBatch(connection, [receiveCall('a'), receiveCall('b', { raw })], SETTINGS);
    const failures = answers.flatMap((answer) => ('failure' in answer ? [answer.failure] : []));
    expect(failures.length).toBeGreaterThan(0);
    for (const { code, message } of failures) {
      expect(code).toBe('inbox_unavailable');
      expect(message).toContain('Free some space');
      expect(message).not.toContain('4111');
    }
    expect(stored()).toHaveLength(2 - failures.length);
    connection.exec('PRAGMA max_page_count = 1073741823');
    const [again] = runBatch(connection, [receiveCall('b', { raw })], SETTINGS);
    expect(again).toMatchObject({ value: [{ outcome: 'stored', id: 'b' }] });
  });

  it('is bounded in operations and in bytes, and has at least one operation', () => {
    const small = Array.from({ length: 7 }, (_, index) => receiveCall(String(index)));
    expect(takeBatch(small, 3)).toHaveLength(3);
    expect(small).toHaveLength(4);
    const raw = Buffer.alloc(5 * 1024 ** 2);
    const large = ['a', 'b', 'c'].map((id) => receiveCall(id, { raw }));
    expect(takeBatch(large, 256)).toHaveLength(2);
    expect(takeBatch(large, 256)).toHaveLength(1);
    expect(takeBatch(large, 256)).toHaveLength(0);
  });
});
