import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresServer } from 'test-postgres';
import type { EngineAccess, EngineName } from 'test-postgres/engines/create-engine-adapter';
import { ENGINES } from 'test-postgres/engines/engine-server';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { startChild } from '../processes/child.ts';
import type { EngineClientConfig } from '../queues/engine-client.ts';
import type { PaymentsWorkerConfig } from '../queues/payments-worker.ts';
import { jobsPerSecond } from '../queues/queue.ts';
import type { Contender, Row, Table } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { register, systemRuntime } from './shared/run-store-operations.ts';
import { ownPostgres } from './shared/create-temporary-storage.ts';
import { paymentsQueue } from './shared/payments-queue.ts';

const OURS = 'nestjs-payments';
const TITLES: Readonly<Record<EngineName, string>> = {
  jetstream: 'JetStream',
  bullmq: 'BullMQ, every write on disk',
  rabbitmq: 'RabbitMQ, quorum queues',
};
const CONCURRENCY = 200;

export const engines: Row = {
  name: 'engines',
  title: 'Handed over to an engine',
  rounds: 3,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const count = sized(scale, 10_000);
    const tables: Table[] = [];
    for (const name of Object.keys(ENGINES) as EngineName[]) {
      if (!ENGINES[name].isInstalled()) continue;
      const { url } = ending.use(await ENGINES[name].start());
      for (const endToEnd of [false, true]) {
        // A name of its own, so that no table takes the messages of another.
        const events = endToEnd ? 'END' : 'HANDOVER';
        const access = { engine: name, url, services: ['ledger'], events };
        const [one, two] = [1, 2].map((processes) => {
          const own = { ...access, events: `${events}_${processes}` };
          return payments(own, endToEnd, processes, count, server, ending);
        });
        const client = ownClient(access, endToEnd, count, ending);
        const from = endToEnd ? 'from a gateway to a handler' : 'handed over';
        tables.push({
          title: `${TITLES[name]}: ${from}`,
          unit: 'events/s',
          better: 'higher',
          contenders: await Promise.all([one!, two!, client]),
          targets: [],
        });
      }
    }
    const missing = Object.values(ENGINES).filter((engine) => !engine.isInstalled());
    const names = missing.map(({ debianPackage }) => `\`${debianPackage}\``).join(', ');
    const left = names === '' ? [] : [`Not measured, because this machine has no ${names}.`];
    return tables.map((table) => ({ ...table, notes: [...NOTES, ...left] }));
  },
};

const NOTES = [
  'In the first table of each engine, a gateway with one process, or with two, hands over the events in its PostgreSQL ' +
    'inbox, 100 at a time in each process. In the second table, a service with the same number of processes also takes ' +
    `the events into its own PostgreSQL inbox and runs ${CONCURRENCY} handlers at a time in each process. The client of the ` +
    'engine publishes the same messages 100 at a time, and a consumer with a prefetch of 100 acknowledges each message. The ' +
    'client stores nothing, so it has no retries, no history and no protection against duplicates, and does not keep ' +
    'the order of a transaction.',
  'Everything runs on one machine: the engine, PostgreSQL and the processes share its processors.',
];

async function payments(
  access: EngineAccess,
  endToEnd: boolean,
  processes: number,
  count: number,
  server: PostgresServer,
  ending: AsyncDisposableStack,
): Promise<Contender> {
  const [store, url] = await openStore('relay', server, ending);
  const gateway: PaymentsWorkerConfig = {
    inbox: { kind: 'postgres', url },
    concurrency: CONCURRENCY,
    engine: access,
    counts: !endToEnd,
  };
  const configs = Array.from({ length: processes }, () => gateway);
  if (endToEnd) {
    const [, own] = await openStore('book', server, ending);
    const engine = { ...access, service: 'ledger' };
    const service = {
      inbox: { kind: 'postgres', url: own },
      concurrency: CONCURRENCY,
      engine,
    } as const;
    configs.push(...configs.map(() => service));
  }
  const name = processes === 1 ? OURS : `${OURS}, ${processes} processes each`;
  const queue = paymentsQueue(name, store, gateway, 'relay');
  return jobsPerSecond(queue, await start(queue.script, configs, ending), count);
}

async function ownClient(
  { engine, url, events = '' }: EngineAccess,
  endToEnd: boolean,
  count: number,
  ending: AsyncDisposableStack,
): Promise<Contender> {
  const client = { engine, url, name: `CLIENT_${events}` };
  const configs: EngineClientConfig[] = [
    { ...client, publish: count, counts: !endToEnd },
    ...(endToEnd ? [{ ...client, publish: null, counts: true }] : []),
  ];
  const queue = { name: 'the client of the engine', fill: async () => {} };
  return jobsPerSecond(queue, await start('queues/engine-client.ts', configs, ending), count);
}

async function openStore(
  handler: string,
  server: PostgresServer,
  ending: AsyncDisposableStack,
): Promise<[InboxStore, string]> {
  const url = await server.createDatabase();
  const store = postgresInbox({ connectionString: url }).create(systemRuntime);
  await store.open();
  await register(store, handler);
  ending.defer(() => store.close());
  return [store, url];
}

async function start(script: string, configs: readonly unknown[], ending: AsyncDisposableStack) {
  const children = await Promise.all(configs.map((config) => startChild(script, config)));
  for (const child of children) ending.defer(() => child.stop());
  return children;
}
