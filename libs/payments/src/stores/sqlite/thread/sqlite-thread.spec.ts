import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadDriver } from './connection.js';
import type { SqliteConnection, Times } from './connection.js';
import { createTables } from '../sql/schema.js';
import {
  isOldSqlite,
  openWriter,
  sqliteVersion,
  storedClock,
  WriteAheadLog,
} from './database-file.js';
import type { Call, CallResponse, FromThread, ToThread } from './messages.js';
import { incoming } from '../../../../../../test/store-contract/contract-fixtures.ts';
import { SqliteServer } from './sqlite-thread.js';

const NOW: Times = { wall: 1_000_000, clock: 1_000_000, processOffset: 0 };
const FULL = 2;
const BUSY_TIMEOUT_MS = 100;

let folder: string;
let store: MessagePort;
let connection: SqliteConnection;
let version: string;
/** `PRAGMA synchronous` at each commit. */
let commits: unknown[];
/** The numbers of the calls in each message with responses, and all responses. */
let responded: number[][];
let responses: CallResponse[];
/** The clocks that the thread sent to the store. */
let clocks: number[];
/** How often the thread reported a write of another process. */
let changes: number;
let closed: Promise<void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'payments-inbox-'));
  const file = join(folder, 'inbox.db');
  const driver = await loadDriver();
  version = sqliteVersion(driver);
  connection = openWriter(driver, file, 100);
  createTables(connection, 100);
  const log = new WriteAheadLog(connection);
  commits = watchCommits();
  const { port1, port2 } = new MessageChannel();
  store = port1;
  [responded, responses, clocks, changes] = [[], [], [], 0];
  closed = new Promise((resolve) => {
    store.on('message', (message: FromThread) => {
      if (message.kind === 'responses') {
        responded.push(message.responses.map(({ number }) => number));
        responses.push(...message.responses);
      }
      if (message.kind === 'changed') changes += 1;
      if (message.kind === 'clock') clocks.push(message.clock);
      if (message.kind === 'closed') resolve();
    });
  });
  new SqliteServer(port2, connection, log, BUSY_TIMEOUT_MS).start();
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

function watchCommits(): unknown[] {
  const seen: unknown[] = [];
  const run = connection.run.bind(connection);
  connection.run = (sql, parameters) => {
    if (sql === 'COMMIT') seen.push(Object.values(connection.get('PRAGMA synchronous')!)[0]);
    return run(sql, parameters);
  };
  return seen;
}

function post(...messages: ToThread[]): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  for (const message of messages) store.postMessage(message);
}

const calls = (...sent: Call[]): ToThread => ({ kind: 'calls', calls: sent });

function receive(number: number, times = NOW): Call {
  const event = incoming({ id: `event-${number}`, raw: new Uint8Array([1]) as Buffer });
  return { number, name: 'receive', args: [[event]], times };
}

const register = (number: number): Call => ({
  number,
  name: 'register',
  args: [{ id: 'worker', leaseMs: 60_000, handlers: [] }],
  times: NOW,
});

const claim = (number: number, times = NOW): Call => ({
  number,
  name: 'claim',
  args: [{ worker: 'worker', wanted: [{ handler: 'book', limit: 10 }] }],
  times,
});

const window = (number: number): Call => ({ number, name: 'window', args: [], times: NOW });

const at = (clock: number): Times => ({ ...NOW, clock });

describe('SqliteServer', () => {
  it('SqliteServer commits calls that arrive together in one synced transaction', async () => {
    post(calls(register(1), receive(2), receive(3)), calls(claim(4)), { kind: 'close' });
    await closed;
    expect(responded).toEqual([[1, 2, 3, 4]]);
    expect(responses.at(-1)).toMatchObject({ value: [{ id: 'event-2' }, { id: 'event-3' }] });
    expect(commits).toEqual([FULL]);
  });

  it('SqliteServer does not use the file during a window, and ends a window that the event loop does not close', async () => {
    post(calls(window(1)));
    await until(() => responded.length === 1);
    post(calls(receive(2)));
    const granted = performance.now();
    await until(() => responded.length === 2);
    expect(performance.now() - granted).toBeGreaterThan(150);
    post(calls(window(3)));
    await until(() => responded.length === 3);
    post(calls(receive(4)), { kind: 'windowClosed' });
    await until(() => responded.length === 4);
    expect(responded).toEqual([[1], [2], [3], [4]]);
  });

  it('SqliteServer runs a waiting batch between two windows', async () => {
    post(calls(receive(1), window(2)));
    await until(() => responded.length === 1);
    post({ kind: 'windowClosed' }, calls(window(3)));
    await until(() => responded.length === 3);
    expect(responded).toEqual([[2], [1], [3]]);
  });

  it('IN-36 SqliteServer stores the clock with a write, at most every 500 ms, and never an earlier clock', async () => {
    const stored: number[] = [];
    for (const clock of [1_000_000, 1_000_499, 1_000_500, 1_000_100]) {
      post(calls(receive(clock, at(clock))));
      await until(() => responses.at(-1)?.number === clock);
      stored.push(storedClock(connection).clock);
    }
    expect(stored).toEqual([1_000_000, 1_000_000, 1_000_500, 1_000_500]);
  });

  it('IN-36 SqliteServer uses the clock of another process if that clock is ahead, and sends it to the store', async () => {
    post(calls(register(1), receive(2, at(5_000_000))));
    await until(() => responded.length === 1);
    // The clock of this store is an hour behind the stored clock; the delivery is due by the stored clock.
    post(calls(claim(3, at(1_400_000))));
    await until(() => responded.length === 2);
    expect(responses.at(-1)).toMatchObject({ value: [{ id: 'event-2' }] });
    expect(clocks).toEqual([5_000_000]);
  });

  it('SqliteServer reports a write of another process that was committed before the store asked for reports', async () => {
    const other = new (await loadDriver())(join(folder, 'inbox.db'));
    other.exec("INSERT INTO payments_inbox_pause VALUES ('book')");
    other.close();
    post({ kind: 'listen', on: true });
    await until(() => changes === 1);
    post({ kind: 'close' });
    await closed;
    expect(changes).toBe(1);
  });

  it('SqliteServer does not store the clock for a claim that finds nothing', async () => {
    post(calls(register(1)));
    await until(() => responded.length === 1);
    const { syncs } = connection.get<{ syncs: number }>('SELECT syncs FROM payments_inbox_meta')!;
    post(calls(claim(2, at(9_000_000))));
    await until(() => responded.length === 2);
    expect(connection.get('SELECT syncs FROM payments_inbox_meta')).toMatchObject({ syncs });
  });

  it('SqliteServer waits for a lock only once when it closes, also with several batches left', async () => {
    const other = new (await loadDriver())(join(folder, 'inbox.db'));
    other.exec('BEGIN IMMEDIATE');
    const tried: string[] = [];
    const run = connection.run.bind(connection);
    connection.run = (sql, parameters) => {
      tried.push(sql);
      return run(sql, parameters);
    };
    const all = Array.from({ length: 3 * 256 }, (_, number) => receive(number + 1));
    post(calls(...all), { kind: 'close' });
    await closed;
    other.close();
    expect(responses).toHaveLength(all.length);
    expect(responses.every((response) => 'failure' in response)).toBe(true);
    const waited = tried.indexOf('ROLLBACK');
    expect(waited).toBeGreaterThan(1);
    expect(tried.slice(waited + 1)).toEqual(
      Array.from({ length: 2 }, () => ['BEGIN IMMEDIATE', 'ROLLBACK']).flat(),
    );
  });

  it('SqliteServer keeps the write-ahead log short, and makes the commit that restarts it', async () => {
    if (isOldSqlite(version)) return;
    const frames = () => connection.get<{ log: number }>('PRAGMA wal_checkpoint(NOOP)')!.log;
    for (let number = 1; number <= 400; number += 1) post(calls(receive(number)));
    await until(() => responses.length === 400);
    for (let number = 401; number <= 600; number += 1) {
      post(calls(receive(number)));
      await until(() => responses.length === number);
    }
    expect(frames()).toBeLessThan(2000);
    expect(commits.every((synchronous) => synchronous === FULL)).toBe(true);
  });
});

/** Throws after 4.5 s, before Jest's own limit, so that a failed test does not loop for ever. */
async function until(reached: () => boolean): Promise<void> {
  const end = performance.now() + 4500;
  while (!reached()) {
    if (performance.now() > end) throw new Error('The thread did not send the expected message.');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
