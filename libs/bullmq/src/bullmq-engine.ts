import { Logger } from '@nestjs/common';
import { DelayedError, Queue, UnrecoverableError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { PaymentsError, ThrottledLog } from 'nestjs-payments';
import type {
  EngineCall,
  EngineMessage,
  EventRelay,
  MessageSource,
  StoreMessage,
} from 'nestjs-payments';
import { resolveBullMQOptions } from './bullmq-options.js';
import type { BullMQOptions, ResolvedBullMQOptions } from './bullmq-options.js';
import { jobDataOf, jobIdOf, jobOptionsOf, messageOf } from './event-job.js';
import {
  connectRelay,
  connectSource,
  endClient,
  reasonOf,
  RedisConnection,
} from './redis-connection.js';
import { findProblems } from './redis-settings.js';

/** Milliseconds for which a process owns a message without renewing its lock. After a crash, others wait this long. */
const LOCK_MS = 20_000;
/** Milliseconds between two searches for messages of crashed processes. */
const STALLED_MS = 5000;
/** Milliseconds between two checks that the service is still registered. */
const REGISTER_MS = 10_000;
/** Milliseconds to wait for BullMQ to close. While Redis is away, BullMQ would wait for ever. */
const CLOSE_MS = 5000;

/** Hands events over to BullMQ, and takes them from it. See {@link bullMQ}. */
export interface BullMQEngine extends EventRelay, MessageSource {
  open(): Promise<void>;
  close(): Promise<void>;
  readonly verify: boolean;
}

/**
 * Creates the engine for the options `relay` and `source`: one queue of BullMQ per service, in Redis. Does not connect
 * yet.
 *
 * - Without `service`, `open` connects for `publish`; with `service`, it connects for `consume`.
 * - `publish` adds the event to the queue of each service. It rejects if there is no service, if Redis is away, or if
 *   Redis has settings that lose events.
 * - `consume` rejects if `service` is missing.
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
export function bullMQ(options: BullMQOptions): BullMQEngine {
  return new Engine(resolveBullMQOptions(options));
}

class Engine implements BullMQEngine {
  readonly verify: boolean;
  readonly #options: ResolvedBullMQOptions;
  readonly #relay: RedisConnection;
  readonly #source: RedisConnection;
  readonly #queues = new Map<string, { readonly client: Redis; readonly queue: Queue }>();
  readonly #log = new ThrottledLog(new Logger('PaymentEngine'));
  #registered = false;

  constructor(options: ResolvedBullMQOptions) {
    this.verify = options.verify;
    this.#options = options;
    const { connection } = options;
    const warn = (error: Error): void =>
      this.#log.warn('Redis', () => `An error of the connection to Redis: ${reasonOf(error)}.`);
    this.#relay = new RedisConnection(
      () => connectRelay(connection),
      (client) => this.#checkSettings(client),
      warn,
    );
    this.#source = new RedisConnection(
      () => connectSource(connection),
      async (client) => {
        await this.#checkSettings(client);
        await this.#register(client);
      },
      warn,
    );
  }

  async open(): Promise<void> {
    const { service } = this.#options;
    await clean(async () => {
      await (service === undefined ? this.#relay : this.#source).ready();
    });
  }

  async close(): Promise<void> {
    this.#queues.clear();
    this.#relay.close();
    this.#source.close();
    this.#log.flush();
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    signal.throwIfAborted();
    const aborted = abortOf(signal);
    try {
      await Promise.race([clean(() => this.#publish(message, signal)), aborted.promise]);
    } finally {
      aborted.forget();
    }
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const { service, queue, maxInProgress } = this.#options;
    if (service === undefined) {
      throw new PaymentsError(
        'options_invalid',
        'PaymentsModule: "source" needs the option "service" of bullMQ, the name of this service. Example: bullMQ({ ' +
          "connection, service: 'ledger' }).",
      );
    }
    const client = await clean(() => this.#source.ready());
    if (signal.aborted) return;
    const storing = new Set<Promise<unknown>>();
    const track: StoreMessage = (message) => {
      const stored = store(message).finally(() => storing.delete(stored));
      storing.add(stored);
      return stored;
    };
    const settle = (job: Job<unknown>, token?: string) => this.#settle(job, token!, track);
    const worker = new EventWorker(`${queue}.${service}`, settle, {
      connection: client,
      autorun: false,
      concurrency: maxInProgress,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_MS,
      // A message is delivered again however often its process has crashed.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: 1000,
      removeOnComplete: { count: 0 },
    });
    const ended = Promise.withResolvers<void>();
    worker.on('error', (error) => {
      this.#log.warn('BullMQ', () => `An error of BullMQ: ${reasonOf(error)}.`);
      // After an error of Redis, such as a full memory, BullMQ would try again without a pause.
      if (error.name === 'ReplyError') ended.reject(error);
    });
    const lost = (): void => ended.reject(new Error('The connection to Redis was lost for good.'));
    const register = (): void => void this.#registerAgain().catch(ended.reject);
    const timer = setInterval(register, REGISTER_MS);
    client.once('end', lost).on('ready', register);
    worker.waitUntilReady().catch(ended.reject);
    const aborted = abortOf(signal);
    try {
      await clean(() => Promise.race([worker.run(), ended.promise, aborted.promise]));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      aborted.forget();
      clearInterval(timer);
      client.off('end', lost).off('ready', register);
      await this.#end(worker, storing);
    }
  }

  async #publish(message: EngineMessage, signal: AbortSignal): Promise<void> {
    const { queue, services } = this.#options;
    const client = await this.#relay.ready();
    const names = new Set([...services, ...(await client.smembers(this.#servicesKey))]);
    signal.throwIfAborted();
    if (names.size === 0) {
      throw new Error(
        `No service takes events from the queue "${queue}" yet, so the event would be lost. Start a worker service with ` +
          'bullMQ({ service }), or name the service in the option "services".',
      );
    }
    // If one of the queues fails, the module publishes the event again. Queues and inboxes ignore the second copy.
    await Promise.all([...names].map((name) => this.#add(client, `${queue}.${name}`, message)));
  }

  /**
   * Adds the event to a queue. BullMQ ignores a job whose id exists. Therefore, if the event was rejected before and is
   * now published again, its failed job gets the new message and waits to be taken again.
   */
  async #add(client: Redis, name: string, message: EngineMessage): Promise<void> {
    const queue = this.#queue(client, name);
    const [id, data] = [jobIdOf(message), jobDataOf(message)];
    const failedAt = client.zscore(queue.toKey('failed'), id);
    await Promise.all([failedAt, queue.add(message.attributes.type, data, jobOptionsOf(message))]);
    if ((await failedAt) === null) return;
    const job: Job<unknown> | undefined = await queue.getJob(id);
    if (job === undefined) throw new Error('The failed job of this event was just removed.');
    await job.updateData(data);
    await job.retry('failed');
  }

  #queue(client: Redis, name: string): Queue {
    const known = this.#queues.get(name);
    if (known?.client === client) return known.queue;
    const queue = new Queue(name, { connection: client, skipVersionCheck: true });
    // Each call rejects with its own error.
    queue.on('error', () => {});
    this.#queues.set(name, { client, queue });
    return queue;
  }

  /**
   * Stores the event, and moves the job accordingly. Then always throws `DelayedError`, which tells BullMQ that the job
   * was moved already. BullMQ itself would move the job to the failed set after any other error, such as a lost
   * connection. A job that could not be moved is delivered again once its lock has expired.
   */
  async #settle(job: Job<unknown>, token: string, store: StoreMessage): Promise<never> {
    try {
      const outcome = await store(messageOf(job));
      if (outcome.action === 'acknowledge') await job.moveToCompleted(null, token, false);
      else if (outcome.action === 'retry') {
        await job.moveToDelayed(Date.now() + Math.ceil(outcome.afterMs), token);
      } else {
        // The options of a job of another program may say otherwise. Its data may not be JSON, and BullMQ could then not
        // list the failed jobs.
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

  /** Waits for the calls of `store`, and then for BullMQ. If Redis is away, ends the connections after some time. */
  async #end(worker: Worker<unknown>, storing: ReadonlySet<Promise<unknown>>): Promise<void> {
    const closed = worker.close();
    while (storing.size > 0) await Promise.allSettled(storing);
    const late = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => late.resolve('late'), CLOSE_MS);
    const first = await Promise.race([closed, late.promise]);
    clearTimeout(timer);
    if (first !== 'late') return;
    this.#source.close();
    void worker.getBackend().blockingClient?.then(endClient, () => {});
  }

  async #checkSettings(client: Redis): Promise<void> {
    for (const { unsafe, text } of await findProblems(client)) {
      if (unsafe && this.#options.setup !== 'warn') throw new PaymentsError('engine_unsafe', text);
      this.#log.warn(text, text);
    }
  }

  async #registerAgain(): Promise<void> {
    try {
      await this.#register(await this.#source.ready());
    } catch (error) {
      // The client connects again by itself.
      if (error instanceof PaymentsError) throw error;
    }
  }

  /** Adds the service to the set of services that get each event. */
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
    if ((await client.sadd(key, service)) === 1 && this.#registered) {
      this.#log.error(
        'services',
        `The registration of the service "${service}" for the queue "${queue}" was missing, and is made again now. The ` +
          `service did not get the events that were published in the meantime. Find out who changed the set "${key}" in Redis, or whether Redis lost data.`,
      );
    }
    this.#registered = true;
  }

  get #servicesKey(): string {
    return `bull:${this.#options.queue}:services`;
  }
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

/** Replaces an error of ioredis or BullMQ by one that contains only the reason. */
async function clean<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof PaymentsError ? error : new Error(reasonOf(error));
  }
}

/** A promise that rejects when the signal is aborted, until it is forgotten. */
function abortOf(signal: AbortSignal): { promise: Promise<never>; forget: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return { promise, forget: () => signal.removeEventListener('abort', abort) };
}
