import { Queue as BullQueue } from 'bullmq';
import { makeWorkerUtils } from 'graphile-worker';
import { postgresInbox } from 'nestjs-payments/postgres';
import { PgBoss } from 'pg-boss';
import type { PostgresServer } from 'test-postgres';
import { delivery } from '../load/webhook-requests.ts';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { jobsPerSecond, startWorkers } from '../queues/queue.ts';
import type { Queue } from '../queues/queue.ts';
import { isRedisInstalled, startRedis } from '../queues/redis-server.ts';
import type { Row, Target } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { ownPostgres } from './shared/create-temporary-storage.ts';
import { paymentsQueue } from './shared/payments-queue.ts';
import { register, systemRuntime } from './shared/run-store-operations.ts';

const FAST = 'nestjs-payments, concurrency 200';
const DEFAULTS = 'nestjs-payments, defaults';
const QUEUES = 'graphile-worker, a queue per transaction';
const BATCH = 500;

export const workPostgres: Row = {
  name: 'work-postgres',
  title: 'From stored to handled, PostgreSQL',
  rounds: 3,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const queues = [
      await payments(FAST, 200, server, ending),
      await payments(DEFAULTS, 20, server, ending),
      await pgBoss(server, ending),
      await graphile(false, server, ending),
      await graphile(true, server, ending),
    ];
    const redis = isRedisInstalled();
    if (redis) queues.push(await bullmq(false, ending), await bullmq(true, ending));
    const running: { queue: Queue; all: CommandProcess[] }[] = [];
    for (const queue of queues) running.push({ queue, all: await startWorkers(queue, ending) });
    // With this many jobs, the start-up costs of a process hardly count, even for the fastest queue.
    const count = sized(scale, 10_000);
    const same = [
      'pg-boss',
      'graphile-worker',
      QUEUES,
      ...(redis ? ['BullMQ, every write on disk'] : []),
    ];
    return [1, 4].map((workers) => ({
      title: `${workers} worker process${workers === 1 ? '' : 'es'}, handlers that do nothing`,
      unit: 'events/s',
      better: 'higher' as const,
      contenders: running.map(({ queue, all }) =>
        jobsPerSecond(queue, all.slice(0, workers), count),
      ),
      targets: same.map(ahead),
      notes: [
        'Each contender has the settings that its own documentation calls fast. nestjs-payments runs 200 ' +
          'handlers at a time in the first line (docs/operating.md), and 20, its default, in the second line. ' +
          'pg-boss runs four loops. Each loop fetches batches of 100 jobs and stores a result for each job. ' +
          'graphile-worker runs 24 jobs at a time, has a local queue of 500 jobs, and completes jobs in batches. ' +
          'BullMQ runs 100 jobs at a time.',
        'nestjs-payments never runs two events of a payment transaction at the same time. nestjs-payments also ' +
          'stores the history of each attempt, and the ids that it needs to recognise a copy of an event. ' +
          'graphile-worker deletes a completed job by its number only, so a worker that has lost its lock on a ' +
          'job still deletes the job. pg-boss, BullMQ and nestjs-payments prevent such a worker from completing ' +
          'the job. With a named queue per payment transaction, graphile-worker also runs the jobs of a payment ' +
          'transaction one at a time. Groups of pg-boss have the same effect, but this measurement does not use ' +
          'groups.',
        redis
          ? 'Redis without persistence may lose acknowledged jobs. With `appendfsync always`, Redis writes each job to ' +
            'the disk before it acknowledges the job, as PostgreSQL does.'
          : 'BullMQ was not measured, because this machine has no `redis-server`.',
      ],
    }));
  },
};

function ahead(against: string): Target {
  const text = `faster than ${against}`;
  return { text, of: 'ratio', subject: FAST, against, at: 'least', bound: 1 };
}

async function payments(
  name: string,
  concurrency: number,
  server: PostgresServer,
  ending: AsyncDisposableStack,
): Promise<Queue> {
  const url = await server.createDatabase();
  const store = postgresInbox({ connectionString: url }).create(systemRuntime);
  await store.open();
  await register(store);
  ending.defer(() => store.close());
  return paymentsQueue(name, store, { inbox: { kind: 'postgres', url }, concurrency });
}

async function pgBoss(server: PostgresServer, ending: AsyncDisposableStack): Promise<Queue> {
  const url = await server.createDatabase();
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  await boss.start();
  ending.defer(() => boss.stop({ graceful: false }));
  await boss.createQueue('events');
  return {
    name: 'pg-boss',
    script: 'queues/pg-boss-worker.ts',
    config: { url },
    fill: (count) =>
      inBatches(count, (bodies) =>
        boss.insert(
          'events',
          bodies.map((body) => ({ data: parsed(body) })),
        ),
      ),
  };
}

/** @param apart whether each payment transaction has a named queue, so that its jobs run one after the other */
async function graphile(
  apart: boolean,
  server: PostgresServer,
  ending: AsyncDisposableStack,
): Promise<Queue> {
  const url = await server.createDatabase();
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.migrate();
  ending.defer(async () => {
    await utils.release();
  });
  return {
    name: apart ? QUEUES : 'graphile-worker',
    script: 'queues/graphile-worker.ts',
    config: { url },
    async fill(count) {
      // Remove the empty queues of the previous round, because they slow down the claims.
      await utils.cleanup({ tasks: ['GC_JOB_QUEUES'] });
      await inBatches(count, (bodies) =>
        utils.addJobs(
          bodies.map((body) => {
            const payload = parsed(body);
            const { transactionId } = payload['data'] as { transactionId: string };
            return { identifier: 'event', payload, ...(apart && { queueName: transactionId }) };
          }),
        ),
      );
    },
  };
}

async function bullmq(durable: boolean, ending: AsyncDisposableStack): Promise<Queue> {
  const port = await startRedis(durable, ending);
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  const queue = new BullQueue('events', { connection });
  ending.defer(() => queue.close());
  return {
    name: durable ? 'BullMQ, every write on disk' : 'BullMQ, nothing on disk',
    script: 'queues/bullmq-worker.ts',
    config: { port },
    fill: (count) =>
      inBatches(count, (bodies) =>
        queue.addBulk(
          bodies.map((body) => ({
            name: 'event',
            data: parsed(body),
            opts: { removeOnComplete: true },
          })),
        ),
      ),
  };
}

async function inBatches(
  count: number,
  put: (bodies: Buffer[]) => Promise<unknown>,
): Promise<void> {
  for (let left = count; left > 0; left -= BATCH) {
    await put(Array.from({ length: Math.min(BATCH, left) }, () => delivery('payments').body));
  }
}

function parsed(body: Buffer): Record<string, unknown> {
  return JSON.parse(body.toString()) as Record<string, unknown>;
}
