import { postgresInbox } from 'nestjs-payments/postgres';
import type { IncomingEvent } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { openLimitStore } from '../apps/bare-event-store.ts';
import { delivery } from '../load/webhook-requests.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';
import {
  incoming,
  concurrently,
  receive,
  register,
  systemRuntime,
} from './shared/run-store-operations.ts';
import { ownPostgres } from './shared/create-temporary-storage.ts';
import { postgresUsage } from './shared/measure-postgres-usage.ts';

const OURS = 'PostgreSQL inbox';
const PAUSED = 'PostgreSQL inbox, its worker paused';
const LIMIT = 'the limit: node:http and what an inbox writes';
const STORE = 'store.receive()';
const WRITES = 'what an inbox writes';
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
      startChild('apps/payments.ts', { adapter, inbox: inbox(url) }),
      startChild('apps/payments.ts', { adapter, inbox: inbox(pausedUrl), works: false }),
      startChild('apps/node-http.ts', { database: { kind: 'postgres', url: limitUrl } }),
    ]);
    for (const app of [ours, paused, limit]) ending.defer(() => app.stop());
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
    const limitStore = await openLimitStore({ kind: 'postgres', url: await database() });
    ending.defer(async () => limitStore.close());
    return [
      {
        title: `Responses to webhook requests, ${WIDTH} connections`,
        unit: 'events/s',
        better: 'higher',
        contenders: [
          withDatabase(underLoad(OURS, ours, load, order, true)),
          underLoad(PAUSED, paused, load, order),
          underLoad(LIMIT, limit, load, order),
        ],
        targets: [atLeast(0.6, OURS, LIMIT, 'at least 0.6 of the limit')],
        notes: [
          'The third line is the limit: a bare node:http server that verifies the signature, stores the event ' +
            'and its delivery with three unique keys, and marks the delivery as done. This server has no ' +
            'framework, handlers, leases, retries or searches. PostgreSQL, the application and the process that ' +
            'sends the load share the cores of this machine.',
        ],
      },
      {
        title: `The store alone, ${WIDTH} events at a time`,
        unit: 'events/s',
        better: 'higher',
        contenders: [
          received(STORE, count, (event) => receive(store, [event])),
          received(WRITES, count, ({ id, orderingKey, raw }) =>
            limitStore.store({ id, transaction: orderingKey!, body: raw }),
          ),
        ],
        targets: [],
        notes: [
          'In the table of the store alone, store.receive() leaves the deliveries pending. The second line of ' +
            'that table also marks the deliveries as done.',
        ],
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
