import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openWriter } from './sqlite.connection.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { loadDriver } from './sqlite.driver.js';
import type { Call, FromThread, ToThread } from './sqlite.messages.js';
import { resolveSqliteOptions } from './sqlite.options.js';
import { migrate } from './sqlite.schema.js';
import { SqliteServer } from './sqlite.server.js';
import { sqliteVersion } from './sqlite.version.js';
import { WriteAheadLog } from './sqlite.wal.js';

const NOW = Date.now();
const [NORMAL, FULL] = [1, 2];

let folder: string;
let store: MessagePort;
/** What was committed, in order: how safely, and whether it was a barrier. */
let commits: { synchronous: unknown; barrier: boolean }[];
/** What the thread has answered, in order, by message. */
let answered: number[][];
let closed: Promise<void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'payments-inbox-'));
  const settings = resolveSqliteOptions({ file: join(folder, 'inbox.db'), allowOldSqlite: true });
  const connection = openWriter(await loadDriver(), settings.file, 100);
  migrate(connection, 100);
  const log = new WriteAheadLog(connection, sqliteVersion(connection));
  commits = watchCommits(connection);
  const { port1, port2 } = new MessageChannel();
  store = port1;
  answered = [];
  closed = new Promise((resolve) => {
    store.on('message', (message: FromThread) => {
      if (message.kind === 'answers') answered.push(message.answers.map(({ number }) => number));
      if (message.kind === 'closed') resolve();
    });
  });
  new SqliteServer(port2, connection, log, settings).start();
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

function watchCommits(connection: SqliteConnection): typeof commits {
  const seen: typeof commits = [];
  const run = connection.run.bind(connection);
  let barrier = false;
  connection.run = (sql, ...parameters) => {
    if (sql === 'BEGIN IMMEDIATE') barrier = false;
    if (sql.includes('barrier')) barrier = true;
    if (sql === 'COMMIT') {
      const [synchronous] = Object.values(connection.get('PRAGMA synchronous')!);
      seen.push({ synchronous, barrier });
    }
    return run(sql, ...parameters);
  };
  return seen;
}

function tell(...messages: ToThread[]): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  for (const message of messages) store.postMessage(message);
}

const calls = (...asked: Call[]): ToThread => ({ kind: 'calls', calls: asked });

const receive = (number: number): Call => {
  const id = `event-${number}`;
  const event = {
    company: 'acme',
    id,
    dedupeKey: id,
    eventType: 't',
    occurredAt: NOW,
    orderingKey: null,
    raw: new Uint8Array([1]),
    headers: {},
    handlers: ['book'],
  };
  return { number, name: 'receive', request: { events: [event] }, now: NOW };
};

const claim = (number: number): Call => ({
  number,
  name: 'claim',
  request: { handlers: ['book'], limit: 10, leaseMs: 60_000 },
  now: NOW,
});

const complete = (number: number, event: number): Call => ({
  number,
  name: 'complete',
  request: { lease: { company: 'acme', id: `event-${event}`, handler: 'book', token: 1 } },
  now: NOW,
});

const SYNCED = { synchronous: FULL, barrier: false };
const UNSYNCED = { synchronous: NORMAL, barrier: false };
const BARRIER = { synchronous: FULL, barrier: true };

describe('the thread of a SQLite inbox', () => {
  it('commits once what comes together, on the disk', async () => {
    tell(calls(receive(1), receive(2)), calls(receive(3)), { kind: 'close' });
    await closed;
    expect(answered).toEqual([[1, 2, 3]]);
    expect(commits).toEqual([SYNCED]);
  });

  it('tells a claim before the disk has it, and has it there with what came beside it', async () => {
    tell(calls(receive(1)));
    await until(() => answered.length === 1);
    tell(calls(receive(2), claim(3)), calls(complete(4, 1), claim(5)), { kind: 'close' });
    await closed;
    expect(answered).toEqual([[1], [3, 5], [2, 4]]);
    expect(commits).toEqual([SYNCED, UNSYNCED, SYNCED]);
  });

  it('has a claim on the disk soon, where nothing follows', async () => {
    tell(calls(receive(1)));
    await until(() => answered.length === 1);
    tell(calls(claim(2)));
    await until(() => commits.length === 3);
    expect(answered).toEqual([[1], [2]]);
    expect(commits).toEqual([SYNCED, UNSYNCED, BARRIER]);
  });

  it('has a claim on the disk before it closes', async () => {
    tell(calls(receive(1)));
    await until(() => answered.length === 1);
    tell(calls(claim(2)), { kind: 'close' });
    await closed;
    expect(commits).toEqual([SYNCED, UNSYNCED, BARRIER]);
  });

  it('writes nothing for a claim that finds nothing', async () => {
    tell(calls(claim(1)), { kind: 'close' });
    await closed;
    expect(commits).toEqual([UNSYNCED]);
  });
});

async function until(reached: () => boolean): Promise<void> {
  while (!reached()) await new Promise((resolve) => setImmediate(resolve));
}
