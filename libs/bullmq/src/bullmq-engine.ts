import { aborted } from 'node:util';
import { DelayedError, Queue, UnrecoverableError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { PaymentsError } from 'nestjs-payments';
import type {
  EngineCall,
  EngineMessage,
  EngineStatus,
  EventRelay,
  MessageSource,
  StoreMessage,
  TakenMessage,
} from 'nestjs-payments';
import {
  endsWithin,
  engineLog,
  InProgress,
  requireService,
  SharedConnection,
  withReasonOnly,
} from 'nestjs-payments/engines';
import { resolveBullMQOptions } from './bullmq-options.js';
import type { BullMQOptions, ResolvedBullMQOptions } from './bullmq-options.js';
import { jobDataOf, jobIdOf, jobOptionsOf, messageOf } from './event-job.js';
import { checkSettings, connectRedis, reasonOf } from './redis-connection.js';

/**
 * Milliseconds until the lock on a message expires if its process does not renew the lock. After a crash of a process,
 * the other processes wait this long before they take its messages.
 */
const LOCK_MS = 20_000;
/** Milliseconds between two searches for messages of crashed processes. */
const STALLED_MS = 5000;
/**
 * Maximum number of milliseconds to wait until BullMQ has closed. If Redis does not answer, BullMQ itself would wait
 * for ever.
 */
const CLOSE_MS = 5000;

/**
 * Creates the engine for the options `relay` and `source`: one queue of BullMQ in Redis per worker service. Does not
 * connect to Redis yet.
 *
 * - `publish` adds the event to the queue of each worker service. It rejects if there is no worker service, if Redis
 *   cannot be reached, or if Redis has settings that lose events.
 * - `consume` rejects if the option `service` is missing.
 *
 * @throws PaymentsError `options_invalid`. `open`, `publish` and `consume` reject with `engine_unsafe` if Redis does not
 *   write an append-only file, may evict events, or does not allow the check (see `setup`).
 *
 * @example
 * ```ts
 * // gateway
 * PaymentsModule.forRootAsync({
 *   useFactory: () => ({ …, relay: bullMQ({ connection: process.env.REDIS_URL!, services: ['ledger'] }) }),
 * });
 * // worker service
 * PaymentsModule.forRootAsync({
 *   useFactory: () => ({ …, source: bullMQ({ connection: process.env.REDIS_URL!, service: 'ledger' }) }),
 * });
 * ```
 */
export function bullMQ(options: BullMQOptions): Required<EventRelay & MessageSource> {
  return new Engine(resolveBullMQOptions(options));
}

/** A connection to a Redis server whose settings were checked, and the queues that use this connection. */
interface Session {
  readonly client: Redis;
  readonly queues: Map<string, Queue>;
}

class Engine implements EventRelay, MessageSource {
  readonly verify: boolean;
  readonly #options: ResolvedBullMQOptions;
  readonly #session: SharedConnection<Session>;
  readonly #log = engineLog();

  constructor(options: ResolvedBullMQOptions) {
    this.verify = options.verify;
    this.#options = options;
    this.#session = new SharedConnection(
      () => this.#connect(),
      ({ client }) => client.disconnect(),
    );
  }

  async open(): Promise<void> {
    await clean(() => this.#session.get());
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    await clean(() => this.#publish(message, signal));
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const { queue, maxInProgress } = this.#options;
    const service = requireService(this.#options.service);
    const session = await clean(() => this.#session.get());
    const inProgress = new InProgress<TakenMessage>();
    const settle = (job: Job<unknown>, token?: string): Promise<never> =>
      this.#settle(job, token!, (message) => {
        const stored = store(message);
        inProgress.add(message, stored);
        return stored;
      });
    const worker = new EventWorker(`${queue}.${service}`, settle, {
      connection: session.client,
      autorun: false,
      concurrency: maxInProgress,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_MS,
      // BullMQ delivers a message again, however often its process has crashed.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: 1000,
      removeOnComplete: { count: 0 },
    });
    const ended = Promise.withResolvers<void>();
    worker.on('error', (error) => {
      this.#log.warn('BullMQ', () => `An error of BullMQ: ${reasonOf(error)}.`);
      // After an error that Redis returns, for example because its memory is full, BullMQ would try again without a
      // pause.
      if (error.name === 'ReplyError') ended.reject(error);
    });
    const lost = (): void => ended.reject(new Error('The connection to Redis was lost.'));
    session.client.once('end', lost);
    worker.waitUntilReady().catch(ended.reject);
    void aborted(signal, worker).then(() => ended.resolve());
    try {
      await clean(() => Promise.race([worker.run(), ended.promise]));
    } finally {
      session.client.off('end', lost);
      await this.#end(worker, session, inProgress);
    }
  }

  async status(): Promise<EngineStatus> {
    return clean(async () => {
      const session = await this.#session.get();
      const { queue, service } = this.#options;
      if (service === undefined) {
        await session.client.ping();
        return {};
      }
      const counts = await queueOf(session, `${queue}.${service}`).getJobCounts();
      const { failed: deadLetters = 0, completed: _, ...waiting } = counts;
      return { lag: Object.values(waiting).reduce((sum, count) => sum + count, 0), deadLetters };
    });
  }

  async close(): Promise<void> {
    this.#log.flush();
    await this.#session.close();
  }

  async #connect(): Promise<Session> {
    const client = await connectRedis(this.#options.connection);
    try {
      await checkSettings(client, this.#options, this.#log);
      await this.#register(client);
    } catch (error) {
      client.disconnect();
      throw error;
    }
    const session: Session = { client, queues: new Map() };
    client.once('end', () => void this.#session.end(session));
    return session;
  }

  async #publish(message: EngineMessage, signal: AbortSignal): Promise<void> {
    const { queue, services } = this.#options;
    const session = await this.#session.get();
    const { client } = session;
    const names = new Set([...services, ...(await client.smembers(this.#servicesKey))]);
    signal.throwIfAborted();
    if (names.size === 0) {
      throw new Error(
        `No service takes events from the queue "${queue}" yet, so the event would be lost. Start a worker service with ` +
          'bullMQ({ service }), or name the service in the option "services".',
      );
    }
    // If the event cannot be added to one of the queues, the module publishes the event again. The other queues and the
    // inboxes ignore the second copy.
    await Promise.all([...names].map((name) => add(session, `${queue}.${name}`, message)));
  }

  /**
   * Stores the event, and moves the job according to the outcome. Afterwards, or after an error such as a lost
   * connection, throws `DelayedError`, so that BullMQ does not move the job itself. After any other error, BullMQ would
   * move the job to the failed set. A job that could not be moved is delivered again once its lock has expired.
   */
  async #settle(job: Job<unknown>, token: string, store: StoreMessage): Promise<never> {
    try {
      const outcome = await store(messageOf(job));
      if (outcome.action === 'acknowledge') await job.moveToCompleted(null, token, false);
      else if (outcome.action === 'retry') {
        await job.moveToDelayed(Date.now() + Math.ceil(outcome.afterMs), token);
      } else {
        // Another program may have added the job. Its options may differ, and its data may not be JSON, with which
        // BullMQ could not list the failed jobs.
        job.opts.removeOnFail = false;
        await job.updateData(job.data);
        await job.moveToFailed(new UnrecoverableError(outcome.code), token, false);
      }
    } catch (error) {
      const text = `BullMQ delivers a message again, because its result could not be saved: ${reasonOf(error)}.`;
      this.#log.warn('settle', text);
    }
    throw new DelayedError();
  }

  /**
   * Waits for the running calls of `store`, and then until BullMQ has closed. If BullMQ has not closed after {@link
   * CLOSE_MS}, closes the connections to Redis.
   */
  async #end(
    worker: Worker<unknown>,
    session: Session,
    inProgress: InProgress<TakenMessage>,
  ): Promise<void> {
    const closed = worker.close();
    closed.catch(() => {});
    await inProgress.end();
    if (await endsWithin(CLOSE_MS, closed)) return;
    await this.#session.end(session);
    (await worker.getBackend().blockingClient)?.disconnect();
  }

  /**
   * Adds the worker service to the set in Redis of the services that get each event. If `setup` is `check`, only checks
   * that the set contains the worker service.
   */
  async #register(client: Redis): Promise<void> {
    const { service, setup, queue } = this.#options;
    if (service === undefined) return;
    const key = this.#servicesKey;
    if (setup === 'check') {
      if ((await client.sismember(key, service)) === 1) return;
      throw new PaymentsError(
        'engine_unsafe',
        `The service "${service}" is not registered for the queue "${queue}", so it would get no events. Run "SADD ` +
          `${key} ${service}" in Redis, or start the service once with bullMQ({ setup: 'create' }).`,
      );
    }
    await client.sadd(key, service);
  }

  get #servicesKey(): string {
    return `bull:${this.#options.queue}:services`;
  }
}

/**
 * Adds the event to a queue. BullMQ ignores a new job if the queue contains a job with the same id. If a worker service
 * rejected the event before and the event is now published again, its failed job gets the new message, and workers can
 * take the job again.
 */
async function add(session: Session, name: string, message: EngineMessage): Promise<void> {
  const queue = queueOf(session, name);
  const [id, data] = [jobIdOf(message), jobDataOf(message)];
  const failedAt = session.client.zscore(queue.toKey('failed'), id);
  await Promise.all([failedAt, queue.add(message.attributes.type, data, jobOptionsOf(message))]);
  if ((await failedAt) === null) return;
  const job: Job<unknown> | undefined = await queue.getJob(id);
  if (job === undefined) throw new Error('The failed job of this event no longer exists.');
  await job.updateData(data);
  await job.retry('failed');
}

function queueOf({ client, queues }: Session, name: string): Queue {
  let queue = queues.get(name);
  if (queue === undefined) {
    queue = new Queue(name, { connection: client, skipVersionCheck: true });
    // Each call rejects with its own error.
    queue.on('error', () => {});
    queues.set(name, queue);
  }
  return queue;
}

/** A worker that also takes jobs whose data is not JSON, so that the module can reject them. */
class EventWorker extends Worker<unknown> {
  protected override createJob(...[job, id]: Parameters<Worker<unknown>['createJob']>) {
    try {
      return super.createJob(job, id);
    } catch {
      return super.createJob({ ...job, data: JSON.stringify(job.data) }, id);
    }
  }
}

function clean<T>(work: () => Promise<T>): Promise<T> {
  return withReasonOnly(work, reasonOf);
}
