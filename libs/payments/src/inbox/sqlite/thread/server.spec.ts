import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openWriter } from './connection.js';
import type { SqliteConnection } from './connection.js';
import { loadDriver } from './driver.js';
import type { Answer, Call, FromThread, ToThread } from './messages.js';
import { resolveSqliteOptions } from '../sqlite-options.js';
import { migrate } from '../sql/schema.js';
import { SqliteServer } from './server.js';
import { sqliteVersion } from '../sqlite-version.js';
import { WriteAheadLog } from './write-ahead-log.js';

const NOW = Date.now();
const [NORMAL, FULL] = [1, 2];

let folder: string;
let store: MessagePort;
/** What was committed, in order: how safely, and whether it was a barrier. */
let commits: { synchronous: unknown; barrier: boolean }[];
/** What the thread has answered, in order, by message. */
let answered: number[][];
let answers: Answer[];
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
  answers = [];
  closed = new Promise((resolve) => {
    store.on('message', (message: FromThread) => {
      if (message.kind === 'answers') {
        answered.push(message.answers.map(({ number }) => number));
        answers.push(...message.answers);
      }
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

const receive = (number: number): Call => receiveFor(number, ['book']);

/** Without a name for a handler, it fails when the event is written. */
function receiveFor(number: number, handlers: (string | null)[]): Call {
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
    stale: false,
    handlers,
  };
  return { number, name: 'receive', request: { events: [event] }, now: NOW };
}

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

const window = (number: number): Call => ({ number, name: 'window', request: null, now: NOW });

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

  it.each([
    ['wrote nothing', receive(1)],
    ['failed, having written', receiveFor(9, [null])],
  ])('has a claim on the disk soon, where what came beside it %s', async (_, beside) => {
    tell(calls(receive(1)));
    await until(() => answered.length === 1);
    tell(calls(claim(2), beside));
    await until(() => commits.some(({ barrier }) => barrier));
    expect(commits.filter(({ barrier }) => barrier)).toEqual([BARRIER]);
    expect(commits[1]).toEqual(UNSYNCED);
  });

  it('leaves a claim to the next batch, while the event loop has the file for itself', async () => {
    tell(calls(receive(1)), calls(window(2)));
    await until(() => answered.length === 2);
    tell({ kind: 'windowClosed' }, calls(claim(3), window(4)));
    await until(() => answered.length === 4);
    const granted = performance.now();
    // Longer than a claim waits to be on the disk.
    await until(() => performance.now() - granted > 20);
    // It is taken back from an event loop that hangs, as this one may.
    expect(commits.length === 2 || performance.now() - granted > 150).toBe(true);
    tell({ kind: 'windowClosed' });
    await until(() => commits.length === 3);
    expect(commits).toEqual([SYNCED, UNSYNCED, BARRIER]);
  });

  it('claims by its own time beside what holds no lease', async () => {
    tell(calls(receive(1)));
    await until(() => answered.length === 1);
    const barrier: Call = { number: 3, name: 'barrier', request: null, now: 0 };
    tell(calls(claim(2), barrier), { kind: 'close' });
    await closed;
    expect(answers).toContainEqual({
      number: 2,
      value: [expect.objectContaining({ id: 'event-1' })],
    });
  });

  it('takes over no lease that its holder settled in time, beside the claim', async () => {
    tell(calls(receive(1)));
    await until(() => answered.length === 1);
    tell(calls(claim(2)));
    await until(() => answered.length === 2);
    tell(
      calls(
        { ...complete(3, 1), now: NOW + 59_999 },
        { ...claim(4), now: NOW + 60_001 },
        { number: 5, name: 'barrier', request: null, now: 0 },
      ),
      { kind: 'close' },
    );
    await closed;
    expect(answers).toContainEqual({ number: 3, value: true });
    expect(answers).toContainEqual({ number: 4, value: [] });
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
