import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { InboxStore } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

/** What an event costs that is received, handled at once and done. Lower a number when the code becomes cheaper. */
const COSTS = {
  /** Index entries, with those of the row version that the settled delivery gets. */
  entries: 7,
  /** Bytes of the write-ahead log, with a body of 400 bytes. */
  walBytes: 2300,
};

const EVENTS = 500;
/** How many events one statement receives. */
const BATCH = 50;

describe('the costs of a handled event on PostgreSQL', () => {
  const inboxes = usePostgresInboxes();
  const schema = 'costs';

  /** Receives events, each with a transaction of its own, and runs their deliveries. */
  async function receive(store: InboxStore, worker: string, count: number) {
    const events = Array.from({ length: count }, (_, n) => {
      const reference = `order ${randomUUID()}`;
      return incoming(randomUUID(), {
        orderingKey: randomUUID(),
        oncePerTransaction: true,
        raw: Buffer.alloc(400, 'x'),
        reference,
        summary: { reference, amount: `${n}.00`, currency: 'KES' },
        assign: { worker, handlers: ['book'] },
      });
    });
    const claimed = (await store.receive(events)).flatMap((receipt) => receipt.claimed);
    expect(claimed).toHaveLength(count);
    return claimed;
  }

  /** The indexes of a table whose condition its only row meets. */
  async function entriesOf(table: string): Promise<string[]> {
    const indexes = await inboxes.query<{ name: string; condition: string | null }>(
      `SELECT x.indexrelid::regclass::text AS name, pg_get_expr(x.indpred, x.indrelid) AS condition
         FROM pg_index x WHERE x.indrelid = '${schema}.${table}'::regclass`,
    );
    const found: string[] = [];
    for (const { name, condition } of indexes) {
      const text = `SELECT FROM ${schema}.${table} WHERE ${condition ?? 'true'}`;
      if ((await inboxes.query(text)).length > 0) found.push(name);
    }
    return found;
  }

  it(`a handled event writes at most ${COSTS.entries} index entries`, async () => {
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    const [lease] = await receive(store, worker, 1);
    const received = [...(await entriesOf('event')), ...(await entriesOf('delivery'))];
    expect(received).toContain(`${schema}.delivery_running`);
    await store.complete(lease!);
    const entries = [...received, ...(await entriesOf('delivery'))];
    expect(entries.length).toBeLessThanOrEqual(COSTS.entries);
  });

  it(`a handled event writes at most ${COSTS.walBytes} bytes of the write-ahead log`, async () => {
    // Other databases of a shared server write to the same log.
    if (!inboxes.server.controllable) return;
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    for (const table of ['event', 'delivery']) {
      await inboxes.query(`ALTER TABLE ${schema}.${table} SET (autovacuum_enabled = off)`);
    }
    const handle = async (): Promise<void> => {
      for (let done = 0; done < EVENTS; done += BATCH) {
        const leases = await receive(store, worker, BATCH);
        await Promise.all(leases.map((lease) => store.complete(lease)));
      }
    };
    const position = async (): Promise<number> => {
      const text = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bytes`;
      const [row] = await inboxes.query<{ bytes: string }>(text);
      return Number(row!.bytes);
    };
    // The first write of a page after a checkpoint logs the whole page.
    await handle();
    const before = await position();
    await handle();
    const perEvent = ((await position()) - before) / EVENTS;
    expect(perEvent).toBeGreaterThan(400);
    expect(perEvent).toBeLessThanOrEqual(COSTS.walBytes);
  });
});
