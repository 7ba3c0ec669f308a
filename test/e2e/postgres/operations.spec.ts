import { describe, expect, it } from '@jest/globals';
import { types } from 'pg';
import {
  claim,
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';

describe('operator requests in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  const one = (
    id: string,
    handlers = ['book'],
  ): [{ company: string; id: string; handlers: string[] }] => [
    { company: 'default', id, handlers },
  ];
  const now = { force: false, dueInMs: [0] };
  const someMilliseconds = (): Promise<unknown> => inboxes.query('SELECT pg_sleep(0.003)');

  it('redrive() and prune() at the same time never act on the same event', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    for (let round = 0; round < 25; round += 1) {
      await store.receive([incoming(`r${round}`)]);
      const [lease] = await claim(store);
      await store.complete(lease!);
      await someMilliseconds();
      const [redriven] = await Promise.all([
        store.redrive(one(`r${round}`), { force: true, dueInMs: [0] }),
        other.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 }),
      ]);
      const left = await claim(store);
      expect(left).toHaveLength(redriven);
      for (const again of left) expect((await store.complete(again)).settled).toBe(true);
    }
  });

  it('the inbox reads its rows correctly if the application has replaced the parsers of the driver', async () => {
    const oids = [16, 17, 20, 23, 25, 114, 701, 1184];
    const before = oids.map((oid) => types.getTypeParser(oid));
    for (const oid of oids) types.setTypeParser(oid, () => 'nonsense');
    try {
      const store = await inboxes.open();
      await store.receive([incoming('e1')]);
      const [lease] = await claim(store);
      expect(lease).toMatchObject({ id: 'e1', attempt: 1 });
      expect(lease!.token).toBeGreaterThan(1e12);
      expect(await store.complete(lease!)).toMatchObject({ settled: true });
      expect((await store.find('default', 'e1'))?.receivedAt.getTime()).toBeGreaterThan(1e12);
    } finally {
      for (const [index, oid] of oids.entries()) types.setTypeParser(oid, before[index]);
    }
  });
});
