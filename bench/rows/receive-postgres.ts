import { postgresInbox } from 'nestjs-payments/postgres';
import type { IncomingEvent } from 'nestjs-payments';
import { GroupedInserts } from '../apps/grouped-inserts.ts';
import { delivery } from '../load/deliveries.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import { Child } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';
import { incoming, concurrently, receive, register, systemRuntime } from './store-operations.ts';
import { ownPostgres } from './temporary-storage.ts';
import { postgresUsage } from './postgres-usage.ts';

const OURS = 'PostgreSQL inbox';
const PAUSED = 'PostgreSQL inbox, its worker paused';
const LIMIT = 'node:http, HMAC, multi-row inserts';
const STORE = 'store.receive()';
const INSERTS = 'one multi-row insert per group';
const WIDTH = 64;

export const receivePostgres: Row = {
  name: 'receive-postgres',
  title: 'Receiving, PostgreSQL inbox, Express',
  rounds: 7,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const database = () => server.createDatabase();
    const [url, pausedUrl, limitUrl] = [await database(), await database(), await database()];
    const inbox = (to: string) => ({ kind: 'postgres', url: to });
    const adapter = 'express';
    const [ours, paused, limit] = await Promise.all([
      Child.start('apps/payments.ts', { adapter, inbox: inbox(url) }),
      Child.start('apps/payments.ts', { adapter, inbox: inbox(pausedUrl), works: false }),
      Child.start('apps/node-http.ts', { url: limitUrl }),
    ]);
    for (const app of [ours, paused, limit]) ending.defer(() => app.end());
    const load = await startLoad(ending);
    const count = sized(scale, 10_000);
    const order = { scheme: 'payments', count, connections: WIDTH } as const;
    /** Adds the costs of the database to the measurement. */
    const withDatabase = (contender: Contender): Contender => ({
      name: contender.name,
      async measure() {
        const before = await postgresUsage(server, url);
        const { value, more } = await contender.measure();
        const after = await postgresUsage(server, url);
        const database = {
          databaseCpuMsPerEvent: (after.cpuMs - before.cpuMs) / count,
          walBytesPerEvent: (after.walBytes - before.walBytes) / count,
        };
        return { value, more: { ...more, ...database } };
      },
    });
    const store = postgresInbox({ connectionString: await database() }).create(systemRuntime);
    await store.open();
    await register(store);
    ending.defer(() => store.close());
    const inserts = await GroupedInserts.open(await database());
    ending.defer(() => inserts.close());
    return [
      {
        id: 'receive-postgres',
        title: `Responses to webhook requests, ${WIDTH} connections`,
        unit: 'events/s',
        better: 'higher',
        contenders: [
          withDatabase(underLoad(OURS, ours, load, order, true)),
          underLoad(PAUSED, paused, load, order),
          underLoad(LIMIT, limit, load, order),
        ],
        targets: [
          atLeast(0.5, OURS, LIMIT, 'at least 0.5 of the limit, node:http with multi-row inserts'),
        ],
        notes: [
          'The third line is the limit: it has no framework and no handlers, and stores only id and body. PostgreSQL, the ' +
            'application and the load share the cores of this machine.',
        ],
      },
      {
        id: 'receive-postgres-store',
        title: `The store alone, ${WIDTH} receives at a time`,
        unit: 'events/s',
        better: 'higher',
        contenders: [
          received(STORE, count, (event) => receive(store, [event])),
          received(INSERTS, count, ({ id, raw }) => inserts.insert(id, raw)),
        ],
        targets: [atLeast(0.5, STORE, INSERTS, 'at least 0.5 of one multi-row insert per group')],
      },
    ];
  },
};

function received(
  name: string,
  count: number,
  receive: (event: IncomingEvent) => Promise<unknown>,
): Contender {
  return {
    name,
    async measure() {
      const events = Array.from({ length: count }, () => incoming(delivery('payments').body));
      const start = performance.now();
      await concurrently(events, WIDTH, receive);
      return { value: (count / (performance.now() - start)) * 1000 };
    },
  };
}
