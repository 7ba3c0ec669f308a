import { deepEqual, equal, ok } from 'node:assert/strict';
import type { RecordKind, RecordStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { DAY_MS } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** Keys and versions of the records of a kind. */
async function recordsOf(records: RecordStore, kind: RecordKind): Promise<string[]> {
  return (await records.list(kind, 1000)).map(({ key, version }) => `${key} ${version}`);
}

/** The records that processes and operators share. */
export const recordCases: readonly InboxContractCase[] = [
  {
    title:
      'OP-01 a record is stored, replaced, listed by its last change and removed, with any text',
    async run({ store: { records }, another, advance }) {
      const body = JSON.stringify({ note: '\0 \ud800 é', number: 1 });
      equal(await records.put({ kind: 'job', key: 'a\0', body: 'first' }), 1);
      await advance(1000);
      equal(await records.put({ kind: 'job', key: 'b', body }), 1);
      equal(await records.put({ kind: 'view', key: 'b', body: 'of another kind' }), 1);
      await advance(5000);
      const other = (await another()).records;
      const [newest, oldest] = await other.list('job', 10);
      deepEqual([newest!.key, newest!.body, oldest!.key], ['b', body, 'a\0']);
      ok(newest!.ageMs >= 4900 && newest!.ageMs < 60_000, `the age is ${newest!.ageMs} ms`);
      ok(newest!.changedAt > oldest!.changedAt);
      equal(await other.put({ kind: 'job', key: 'a\0', body: 'second' }), 2);
      deepEqual(await recordsOf(records, 'job'), ['a\0 2', 'b 1']);
      equal((await records.list('job', 1))[0]!.body, 'second');
      const found = await other.list('job', 1, 'é","number"');
      deepEqual(
        found.map(({ key }) => key),
        ['b'],
      );
      deepEqual(await other.list('job', 1, 'NOTE'), []);
      await records.remove('job', 'a\0');
      await records.remove('job', 'not stored');
      deepEqual(await recordsOf(other, 'job'), ['b 1']);
      deepEqual(await recordsOf(other, 'view'), ['b 1']);
    },
  },
  {
    title: 'OP-01 of several processes that change one version of a record, exactly one succeeds',
    async run({ store, another }) {
      const stores = [store, await another(), await another()].map(({ records }) => records);
      for (const ifVersion of [0, 1, 2]) {
        const race = stores.map((records, index) =>
          records.put({ kind: 'job', key: 'one', body: `${index}`, ifVersion }),
        );
        const won = (await Promise.all(race)).filter((version) => version !== null);
        deepEqual(won, [ifVersion + 1]);
      }
      const { records } = store;
      equal(await records.put({ kind: 'job', key: 'one', body: 'old', ifVersion: 2 }), null);
      equal(await records.put({ kind: 'job', key: 'other', body: 'none', ifVersion: 2 }), null);
      deepEqual(await recordsOf(records, 'job'), ['one 3']);
    },
  },
  {
    title: 'OP-02 prune() deletes old records of processes, jobs, the audit and acknowledgements',
    async run({ store, advance }) {
      const { records } = store;
      const kinds = ['process', 'job', 'audit', 'view', 'acknowledgement'] as const;
      const left = async () => {
        equal(await store.prune({ bodiesMs: DAY_MS, tombstonesMs: 200 * DAY_MS, limit: 10 }), 0);
        const counts = await Promise.all(kinds.map((kind) => recordsOf(records, kind)));
        return kinds.filter((_kind, index) => counts[index]!.length > 0).join();
      };
      for (const kind of kinds) await records.put({ kind, key: 'a', body: '' });
      equal(await left(), 'process,job,audit,view,acknowledgement');
      await advance(DAY_MS);
      equal(await left(), 'job,audit,view,acknowledgement');
      await advance(30 * DAY_MS);
      equal(await left(), 'audit,view,acknowledgement');
      await advance(60 * DAY_MS);
      equal(await left(), '');
    },
  },
  {
    title: 'OP-02 prune() keeps the last 10,000 records of the audit',
    async run({ store, advance }) {
      const { records } = store;
      const isStored = async (key: string) =>
        (await records.put({ kind: 'audit', key, body: '', ifVersion: 0 })) === null;
      for (const key of ['first', 'second']) {
        equal(await isStored(key), false);
        await advance(10);
      }
      for (let row = 0; row < 99; row += 1) {
        await Promise.all(
          Array.from({ length: 101 }, (_one, index) => isStored(`${row} ${index}`)),
        );
      }
      await store.prune({ bodiesMs: DAY_MS, tombstonesMs: DAY_MS, limit: 10 });
      equal(await isStored('second'), true);
      equal(await isStored('first'), false);
    },
  },
];
