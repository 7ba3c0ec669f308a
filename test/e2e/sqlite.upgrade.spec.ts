import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { InboxStore } from '../../libs/payments/dist/inbox/inbox-store.js';
import { expectToGoOn, outcomes } from '../support/inbox.upgrade.js';
import { incoming, SqliteHarness } from './sqlite.harness.ts';

const VERSION_1 = readFileSync(join(import.meta.dirname, 'sqlite.version-1.sql'), 'utf8');
const NOW = Date.now();

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
  const file = new DatabaseSync(harness.file);
  file.exec(`PRAGMA journal_mode = WAL; ${VERSION_1}`);
  file.close();
});
afterEach(() => harness.dispose());

/** Stores an event in the statements of version 1. */
function receiveAsVersion1(file: DatabaseSync, id: string): void {
  const { seq } = file
    .prepare(
      `INSERT INTO payments_inbox_event
         (company, id, dedupe_key, event_type, occurred_at, ordering_key, received_at, digest, deliveries, open)
       VALUES ('acme', ?, NULL, 't', ?, NULL, ?, x'00', 1, 1) RETURNING seq`,
    )
    .get(id, NOW, NOW) as { seq: number };
  file
    .prepare("INSERT INTO payments_inbox_body (event_seq, raw) VALUES (?, coalesce(?, x''))")
    .run(seq, Buffer.from('{}'));
  file
    .prepare(
      `INSERT INTO payments_inbox_delivery
         (event_seq, handler, state, due_at, lane, occurred_at, received_at)
       VALUES (?, 'book', 'pending', ?, NULL, ?, ?)`,
    )
    .run(seq, NOW, NOW, NOW);
}

/** Changes an event's delivery in the way of version 1. */
function changeAsVersion1(file: DatabaseSync, id: string, set: string): void {
  file
    .prepare(
      `UPDATE payments_inbox_delivery SET ${set}
       WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = ?)`,
    )
    .run(id);
}

const CLAIMED = (until: number) =>
  `state = 'running', attempts = attempts + 1, token = token + 1, due_at = ${until}`;
const DONE = `state = 'done', due_at = NULL, finished_at = ${NOW}`;
const FAILED = `state = 'pending', last_error = 'no', due_at = ${NOW}`;
const DEAD = `state = 'dead', due_at = NULL, last_error = 'no', finished_at = ${NOW}`;

const claim = (store: InboxStore) =>
  store.claim({ handlers: ['book'], limit: 10, leaseMs: 60_000 });

describe('the upgrade of a SQLite inbox of version 1', () => {
  it('has everything that was stored go on, with no headers and no history of before', async () => {
    const file = harness.connect();
    for (const [id, ended] of Object.entries({
      done: DONE,
      failed: FAILED,
      dead: DEAD,
      lost: '',
    })) {
      receiveAsVersion1(file, id);
      changeAsVersion1(file, id, CLAIMED(NOW));
      if (ended !== '') changeAsVersion1(file, id, ended);
    }
    receiveAsVersion1(file, 'new');
    const store = await harness.open();
    await expectToGoOn(store, 'acme');
    harness.advance(5000);
    expect(await store.prune({ bodiesMs: 1000, tombstonesMs: 1e9, limit: 10 })).toBe(5);
    expect(await store.receive([incoming({ id: 'done' })])).toMatchObject([
      { outcome: 'conflict' },
    ]);
  });

  it('leaves a process of version 1 that runs on able to receive, claim, settle and prune', async () => {
    const file = harness.connect();
    const store = await harness.open();
    receiveAsVersion1(file, 'a');
    await store.receive([incoming({ id: 'b', headers: { 'user-agent': 'x' } })]);
    for (const id of ['a', 'b']) changeAsVersion1(file, id, CLAIMED(NOW + 60_000));
    changeAsVersion1(file, 'a', FAILED);
    changeAsVersion1(file, 'b', DONE);
    const [again] = await claim(store);
    expect(again).toMatchObject({ id: 'a', attempt: 2 });
    expect(await store.complete(again!)).toBe(true);
    expect(await outcomes(store, 'acme', 'a')).toEqual([[2, 'done']]);
    expect(await store.find('acme', 'b')).toMatchObject({
      headers: { 'user-agent': 'x' },
      deliveries: [{ state: 'done', history: [] }],
    });
    file.exec(`PRAGMA foreign_keys = ON;
      DELETE FROM payments_inbox_body WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = 'b');
      DELETE FROM payments_inbox_delivery WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = 'b');
      UPDATE payments_inbox_event SET pruned = 1, deliveries = 0 WHERE id = 'b'`);
    const tombstone = (await store.find('acme', 'b'))!;
    expect([tombstone.raw, tombstone.headers]).toEqual([null, {}]);
  });

  it('forgets recorded minutes after a day', async () => {
    const store = await harness.open();
    const counts = { received: 1, handled: 0, failed: 0, dead: 0, handledWithin: [] };
    await store.record(counts);
    const rows = () =>
      harness.connect().prepare('SELECT count(*) AS n FROM payments_inbox_activity').get()!['n'];
    harness.advance(1439 * 60_000);
    await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 1 });
    expect(rows()).toBe(1);
    harness.advance(2 * 60_000);
    await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 1 });
    expect(rows()).toBe(0);
  });
});
