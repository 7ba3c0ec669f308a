import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadDriver } from './connection.js';
import type { SqliteConnection, Times } from './connection.js';
import { Pruning } from '../../sql/prune.js';
import type { Pruned } from '../../sql/prune.js';
import { migrate } from '../migrate.js';
import { isOldSqlite, openWriter, sqliteVersion, storedClock } from './database-file.js';
import type { Call, FromThread, ToThread } from './messages.js';
import { incoming } from '../../../../../../test/store-contract/contract-fixtures.ts';
import { SqliteServer } from './sqlite-thread.js';

const NOW: Times = { wall: 1_000_000, clock: 1_000_000, processOffset: 0 };
const FULL = 2;

let folder: string;
let store: MessagePort;
let connection: SqliteConnection;
/** `PRAGMA synchronous` at each commit. */
let commits: unknown[];
/** The responses of the thread, and how many checkpoints it has made after them. */
let done: (FromThread & { kind: 'done' })[];
let checkpoints: number;
/** How often the thread reported a write of another process. */
let changes: number;
let closed: Promise<void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'payments-inbox-'));
  connection = openWriter(await loadDriver(), join(folder, 'inbox.db'), 100);
  migrate(connection, 100);
  commits = watchCommits();
  const { port1, port2 } = new MessageChannel();
  store = port1;
  [done, checkpoints, changes] = [[], 0, 0];
  store.on('message', (message: FromThread) => {
    if (message.kind === 'done') done.push(message);
    if (message.kind === 'ready') checkpoints += 1;
    if (message.kind === 'changed') changes += 1;
  });
  closed = new Promise((resolve) => store.on('close', resolve));
  void new SqliteServer(port2, connection, 100);
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

function post(message: ToThread): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  store.postMessage(message);
}

/** Sends a message with calls. Resolves with its response. */
async function run(calls: Call[], times = NOW): Promise<FromThread & { kind: 'done' }> {
  sent += 1;
  const number = sent;
  post({ kind: 'run', number, calls, times });
  await until(() => done.some((message) => message.number === number));
  return done.find((message) => message.number === number)!;
}
let sent = 0;

const receive = (id: string): Call => ({
  name: 'receive',
  args: [[incoming({ id, raw: new Uint8Array([1]) as Buffer })]],
});

const REGISTER: Call = {
  name: 'register',
  args: [{ id: 'worker', leaseMs: 60_000, handlers: [] }],
};

const CLAIM: Call = {
  name: 'claim',
  args: [{ workerId: 'worker', wanted: [{ handler: 'book', limit: 10 }] }],
};

const at = (clock: number): Times => ({ ...NOW, clock });

describe('SqliteServer', () => {
  it('SqliteServer commits the writes of one message in one synced transaction', async () => {
    const { outcomes } = await run([REGISTER, receive('a'), receive('b'), CLAIM]);
    expect(outcomes).toHaveLength(4);
    expect(outcomes[3]).toMatchObject({ value: [{ id: 'a' }, { id: 'b' }] });
    expect(commits).toEqual([FULL]);
  });

  it('SqliteServer prunes at most 100 events with a message, so that other messages run between two slices', async () => {
    await run(Array.from({ length: 150 }, (_, n) => receive(`event-${n}`)));
    connection.run(
      "UPDATE payments_inbox_delivery SET state = 'done', queue = NULL, due_at = NULL",
    );
    commits.length = 0;
    const request = { bodiesMs: 10, tombstonesMs: 1e9, limit: 1000 };
    const slices = new Pruning().prune(request, async (slice) => {
      const prune: Call = { name: 'pruneSlice', args: [slice] };
      const { outcomes } = await run([prune], { ...NOW, wall: NOW.wall + 1000 });
      return (outcomes[0] as { value: Pruned }).value;
    });
    const received = run([receive('between')]);
    expect(await slices).toBe(150);
    await received;
    expect(commits.length).toBeGreaterThan(2);
    expect(done.at(-1)!.outcomes).toMatchObject([{ value: { done: true } }]);
  });

  it('IN-36 SqliteServer stores the clock with a write, at most every 500 ms, and never stores an earlier clock', async () => {
    const stored: number[] = [];
    for (const clock of [1_000_000, 1_000_499, 1_000_500, 1_000_100]) {
      await run([receive(String(clock))], at(clock));
      stored.push(storedClock(connection).clock);
    }
    expect(stored).toEqual([1_000_000, 1_000_000, 1_000_500, 1_000_500]);
  });

  it('IN-36 SqliteServer uses the clock of another process if that clock is ahead, and sends the time of that clock to the store', async () => {
    await run([REGISTER, receive('a')], at(5_000_000));
    // The clock of this store is an hour behind the stored clock; the delivery is due by the stored clock.
    const { outcomes, ahead } = await run([CLAIM], at(1_400_000));
    expect(outcomes).toMatchObject([{ value: [{ id: 'a' }] }]);
    expect(ahead).toBe(5_000_000);
  });

  it('SqliteServer reports a write of another process exactly once', async () => {
    const other = new (await loadDriver())(join(folder, 'inbox.db'));
    other.exec("INSERT INTO payments_inbox_pause VALUES ('book', '{}', 0, NULL)");
    other.close();
    await until(() => changes === 1);
    post({ kind: 'close' });
    await closed;
    expect(changes).toBe(1);
  });

  it('SqliteServer writes no time to the file for a claim that finds no delivery', async () => {
    await run([REGISTER]);
    const { syncs } = connection.get<{ syncs: number }>('SELECT syncs FROM payments_inbox_meta')!;
    await run([CLAIM], at(9_000_000));
    expect(connection.get('SELECT syncs FROM payments_inbox_meta')).toMatchObject({ syncs });
  });

  it('SqliteServer keeps the write-ahead log short, and makes the commit that restarts the log', async () => {
    if (isOldSqlite(sqliteVersion(await loadDriver()))) return;
    const frames = () => connection.get<{ log: number }>('PRAGMA wal_checkpoint(NOOP)')!.log;
    let announced = 0;
    for (let number = 1; number <= 300; number += 1) {
      const { checkpoint } = await run([receive(String(number))]);
      if (checkpoint) announced += 1;
    }
    await until(() => checkpoints === announced);
    expect(announced).toBeGreaterThan(0);
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
