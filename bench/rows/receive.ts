import { join } from 'node:path';
import { startLoad, underLoad } from '../load/load-generator.ts';
import type { LoadOrder } from '../load/load-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row, Target } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';
import { ownPostgres, temporaryFolder } from './shared/create-temporary-storage.ts';
import { postgresUsage } from './shared/measure-postgres-usage.ts';
import type { PostgresUsage } from './shared/measure-postgres-usage.ts';

const OURS = 'nestjs-payments';
const ROUTE = 'Nest route, nothing verified';
const GOLEVELUP = '@golevelup/nestjs-stripe';
const SQLITE = 'SQLite inbox';
const POSTGRES = 'PostgreSQL inbox';
const LIMIT = 'the limit: node:http and what an inbox writes';
const LIMIT_NOTE =
  'The third line is the limit: a bare node:http server that verifies the signature, stores the event and its ' +
  'delivery with three unique keys, and marks the delivery as done. This server has no framework, handlers, leases, ' +
  'retries or searches.';

// V8 compiles code of nestjs-payments until about 48,000 deliveries have run. V8 compiles the code of the other
// contenders earlier.
const WARM_UP = 8;

/** A server that receives webhook requests. */
interface Receiver {
  readonly name: string;
  readonly script: string;
  readonly config?: unknown;
  /** Default: `payments`. */
  readonly scheme?: LoadOrder['scheme'];
  /** Whether a round ends only when all deliveries are handled. */
  readonly settled?: boolean;
  /** Reads what the server's database has used. */
  readonly usage?: () => Promise<PostgresUsage>;
}

interface Receiving extends Pick<Row, 'name' | 'title' | 'rounds'> {
  /** Number of webhook requests per round. */
  readonly count: number;
  readonly warmUp?: number;
  readonly targets: readonly Target[];
  readonly notes: readonly string[];
  receivers(ending: AsyncDisposableStack): Promise<Receiver[]> | Receiver[];
}

function receiving({ name, title, rounds, warmUp = 1, targets, notes, ...own }: Receiving): Row {
  return {
    name,
    title,
    rounds,
    async open(scale, ending) {
      const load = await startLoad(ending);
      const count = sized(scale, own.count);
      const contenders: Contender[] = [];
      for (const { config = {}, ...receiver } of await own.receivers(ending)) {
        const server = await startChild(receiver.script, config);
        ending.defer(() => server.stop());
        const order = { scheme: receiver.scheme ?? 'payments', count, connections: 64 };
        const contender = underLoad(receiver.name, server, load, order, receiver.settled);
        contenders.push(
          receiver.usage ? withDatabase(contender, receiver.usage, count) : contender,
        );
      }
      return [
        {
          title: 'Responses to webhook requests, 64 connections',
          unit: 'events/s',
          better: 'higher',
          warmUp,
          contenders,
          targets,
          notes,
        },
      ];
    },
  };
}

/** Adds the costs of the database to the measurement. */
function withDatabase(
  contender: Contender,
  usage: () => Promise<PostgresUsage>,
  count: number,
): Contender {
  return {
    name: contender.name,
    async measure() {
      const before = await usage();
      const { value, more } = await contender.measure();
      const after = await usage();
      const database = {
        databaseCpuMsPerEvent: (after.cpuMs - before.cpuMs) / count,
        walBytesPerEvent: (after.walBytes - before.walBytes) / count,
      };
      return { value, more: { ...more, ...database } };
    },
  };
}

export const receiveExpress = receiving({
  name: 'receive-express',
  title: 'Receiving, memory inbox, Express',
  rounds: 9,
  count: 6000,
  warmUp: WARM_UP,
  receivers: () => {
    const adapter = 'express';
    const inbox = { kind: 'memory' };
    return [
      { name: OURS, script: 'apps/payments.ts', config: { adapter, inbox } },
      { name: ROUTE, script: 'apps/nest-route.ts', config: { adapter } },
      {
        name: GOLEVELUP,
        script: 'apps/golevelup-stripe.ts',
        config: { adapter },
        scheme: 'stripe',
      },
      {
        name: 'nestjs-payments, WebhookGuard alone',
        script: 'apps/guarded-route.ts',
        config: { adapter },
      },
    ];
  },
  targets: [
    atLeast(0.6, OURS, ROUTE, 'at least 0.6 of the bare Nest route that parses the same JSON'),
    atLeast(1.25, OURS, GOLEVELUP, 'at least 1.25 of @golevelup/nestjs-stripe'),
  ],
  notes: [
    'nestjs-payments responds after the handler has succeeded and the event is stored, so that the inbox ' +
      'recognises a copy of the event. The bare Nest route does not verify or store the event. ' +
      '@golevelup/nestjs-stripe verifies HMAC-SHA256. This processor may compute HMAC-SHA256 several times ' +
      'faster than HMAC-SHA512, with which the payments service signs. In the last line, a controller of ' +
      'the application uses WebhookGuard, which verifies and parses the event but does not store it.',
  ],
});

export const receiveFastify = receiving({
  name: 'receive-fastify',
  title: 'Receiving, memory inbox, Fastify',
  rounds: 9,
  count: 8000,
  warmUp: WARM_UP,
  receivers: () => {
    const adapter = 'fastify';
    const inbox = { kind: 'memory' };
    return [
      { name: OURS, script: 'apps/payments.ts', config: { adapter, inbox } },
      { name: ROUTE, script: 'apps/nest-route.ts', config: { adapter } },
      { name: 'node:http and HMAC-SHA512', script: 'apps/node-http.ts' },
    ];
  },
  targets: [atLeast(0.8, OURS, ROUTE, 'at least 0.80 of the bare Nest Fastify route')],
  notes: [
    'The last line is the limit. A node:http server without a framework verifies the signature and ' +
      'parses the body.',
  ],
});

export const receiveSqlite = receiving({
  name: 'receive-sqlite',
  title: 'Receiving, SQLite inbox, Express',
  rounds: 9,
  count: 4000,
  warmUp: WARM_UP,
  async receivers(ending) {
    const folder = await temporaryFolder(ending);
    const sqlite = (name: string) => ({ kind: 'sqlite', file: join(folder, `${name}.db`) });
    return [
      ...storing(SQLITE, sqlite('ours'), sqlite('paused'), sqlite('limit')),
      {
        name: 'memory inbox',
        script: 'apps/payments.ts',
        config: { adapter: 'express', inbox: { kind: 'memory' } },
      },
    ];
  },
  targets: [atLeast(0.6, SQLITE, LIMIT, 'at least 0.6 of the limit')],
  notes: [
    'All contenders except the memory inbox respond after the event is on the disk, including fsync. In ' +
      `the first and the last line, handlers run in the same process during the measurement. ${LIMIT_NOTE}`,
  ],
});

export const receivePostgres = receiving({
  name: 'receive-postgres',
  title: 'Receiving, PostgreSQL inbox, Express',
  rounds: 7,
  count: 10_000,
  async receivers(ending) {
    const server = await ownPostgres(ending);
    const database = async () => ({ kind: 'postgres', url: await server.createDatabase() });
    const own = await database();
    const [ours, ...others] = storing(POSTGRES, own, await database(), await database());
    return [{ ...ours!, usage: () => postgresUsage(server, own.url) }, ...others];
  },
  targets: [atLeast(0.6, POSTGRES, LIMIT, 'at least 0.6 of the limit')],
  notes: [
    `${LIMIT_NOTE} PostgreSQL, the application and the process that sends the load share the cores of this machine.`,
  ],
});

/** The inbox, the inbox without handlers, and the limit, each with a database of its own. */
function storing(name: string, inbox: object, paused: object, limit: object): Receiver[] {
  const adapter = 'express';
  return [
    { name, script: 'apps/payments.ts', config: { adapter, inbox }, settled: true },
    {
      name: `${name}, its worker paused`,
      script: 'apps/payments.ts',
      config: { adapter, inbox: paused, works: false },
    },
    { name: LIMIT, script: 'apps/node-http.ts', config: { database: limit } },
  ];
}
