import { Inject, Injectable, Logger } from '@nestjs/common';
import { parseEnvelope } from '../events/envelope.js';
import { EventDispatcher } from '../events/event.dispatcher.js';
import { HandlerRegistry } from '../events/handler.registry.js';
import { describeThrown } from '../events/thrown.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type { ClaimedDelivery, InboxStore } from './inbox.store.js';
import { INBOX_STORE, WORKER_OPTIONS } from './inbox.tokens.js';
import { Settlements } from './settlements.js';
import { backoffMs } from './worker.options.js';
import type { ResolvedWorkerOptions } from './worker.options.js';

/** How long the worker sleeps at the most before it looks again, whatever the store said was next. */
const MAX_SLEEP_MS = 30_000;
/** How long it waits after the store failed it. */
const STORE_DOWN_MS = 1000;

interface Run {
  readonly ended: Promise<void>;
  readonly abort: AbortController;
}

/**
 * Claims due deliveries, runs their handlers and settles them: one worker for every store. It is woken when
 * an event is stored, when a handler ends, and when the next delivery falls due.
 */
@Injectable()
export class InboxWorker {
  readonly #logger = new Logger('PaymentInbox');
  readonly #running = new Set<Run>();
  #state: 'idle' | 'working' | 'draining' = 'idle';
  #pumping: Promise<void> | null = null;
  #again = false;
  #cancelSleep: () => void = () => {};

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(EventDispatcher) private readonly dispatcher: EventDispatcher,
    @Inject(Settlements) private readonly settlements: Settlements,
  ) {}

  /** Whether deliveries are being run: between {@link start} and {@link drain}. */
  get working(): boolean {
    return this.#state === 'working';
  }

  start(): void {
    this.#state = 'working';
    this.wake();
  }

  /** Looks for due deliveries now. */
  wake(): void {
    this.#again = true;
    if (this.#state === 'working') this.#pumping ??= this.#pump();
  }

  /** Claims nothing more, waits up to `drainMs` for what runs, then aborts what is left. */
  async drain(): Promise<void> {
    this.#state = 'draining';
    this.#cancelSleep();
    await this.#pumping;
    let cancel = () => {};
    const timeUp = new Promise<'late'>((resolve) => {
      cancel = this.runtime.schedule(this.options.drainMs, () => resolve('late'));
    });
    const ended = Promise.all([...this.#running].map((run) => run.ended));
    if ((await Promise.race([ended, timeUp])) === 'late') {
      this.#logger.warn(
        `${this.#running.size} payment handlers still ran after ${this.options.drainMs} ms of draining and ` +
          'were aborted. Raise "worker.drainMs", or have them heed context.signal.',
      );
      for (const run of this.#running) run.abort.abort();
    }
    cancel();
    this.settlements.abandon();
  }

  async #pump(): Promise<void> {
    let sleepMs: number = STORE_DOWN_MS;
    try {
      while (this.#again && this.#state === 'working') {
        this.#again = false;
        await this.#claim();
      }
      sleepMs = await this.#untilNextDue();
    } catch (error) {
      this.#logger.error(`The payment inbox could not be read: ${describeThrown(error)}`);
    }
    this.#pumping = null;
    this.#cancelSleep();
    if (this.#again) this.wake();
    else this.#cancelSleep = this.runtime.schedule(sleepMs, () => this.wake());
  }

  async #claim(): Promise<void> {
    const free = this.options.concurrency - this.#running.size;
    if (free <= 0) return;
    const deliveries = await this.store.claim({
      handlers: this.registry.names(),
      limit: free,
      leaseMs: this.options.leaseMs,
    });
    for (const delivery of deliveries) this.#start(delivery);
  }

  /** A worker that is full is woken by the end of a handler, so it need not ask. */
  async #untilNextDue(): Promise<number> {
    if (this.#running.size >= this.options.concurrency) return MAX_SLEEP_MS;
    const next = await this.store.nextDueInMs(this.registry.names());
    return Math.min(MAX_SLEEP_MS, Math.max(1, Math.ceil(next ?? MAX_SLEEP_MS)));
  }

  #start(delivery: ClaimedDelivery): void {
    const abort = new AbortController();
    const run: Run = {
      abort,
      ended: this.#run(delivery, abort).then(() => {
        this.#running.delete(run);
        this.wake();
      }),
    };
    this.#running.add(run);
  }

  /** Never rejects. */
  async #run(delivery: ClaimedDelivery, abort: AbortController): Promise<void> {
    const stopHeartbeat = this.#heartbeat(delivery, abort);
    let failure: { thrown: unknown } | null = null;
    try {
      const { company, handler, attempt, receivedAt } = delivery;
      const raw = Buffer.from(delivery.raw);
      const context = { company, handler, attempt, receivedAt, raw, signal: abort.signal };
      await this.dispatcher.dispatch(parseEnvelope(raw), Object.freeze(context));
    } catch (thrown) {
      failure = { thrown };
    } finally {
      stopHeartbeat();
    }
    try {
      const settled = failure
        ? await this.#fail(delivery, failure.thrown)
        : await this.store.complete(delivery);
      if (!settled) this.#warnLost(delivery);
    } catch (error) {
      this.#logger.error(
        `Delivery ${name(delivery)} could not be settled: ${describeThrown(error)}. It runs again when its lease ends.`,
      );
    }
    this.settlements.report(delivery, failure ? 'failed' : 'succeeded');
  }

  async #fail(delivery: ClaimedDelivery, thrown: unknown): Promise<boolean> {
    const { maxAttempts } = this.options;
    const hopeless =
      thrown instanceof PaymentsError &&
      (thrown.code === 'unrecoverable' || thrown.code === 'data_invalid');
    const dead = hopeless || delivery.attempt >= maxAttempts;
    const retryInMs = dead
      ? null
      : backoffMs(delivery.attempt, this.options, this.runtime.random());
    const error = describeThrown(thrown);
    const attempt = `${name(delivery)} failed (attempt ${delivery.attempt} of ${maxAttempts})`;
    if (retryInMs === null) {
      this.#logger.error(
        `Delivery ${attempt} and is dead; it is kept and can be redriven. ${error}`,
      );
    } else {
      this.#logger.warn(
        `Delivery ${attempt}; next attempt in ${retryInMs} ms at the latest. ${error}`,
      );
    }
    return this.store.fail(delivery, { error, retryInMs });
  }

  #heartbeat(delivery: ClaimedDelivery, abort: AbortController): () => void {
    const { leaseMs } = this.options;
    let cancel = () => {};
    const beat = async (): Promise<void> => {
      const held = await this.store.extend(delivery, leaseMs).catch(() => true);
      if (stopped) return;
      if (held) cancel = this.runtime.schedule(leaseMs / 3, () => void beat());
      else abort.abort();
    };
    let stopped = false;
    cancel = this.runtime.schedule(leaseMs / 3, () => void beat());
    return () => {
      stopped = true;
      cancel();
    };
  }

  #warnLost(delivery: ClaimedDelivery): void {
    this.#logger.warn(
      `Delivery ${name(delivery)} lost its lease while it ran, so what it did is not recorded and it runs ` +
        'again. Raise "worker.leaseMs", or look for what blocks the event loop.',
    );
  }
}

function name({ company, id, handler }: ClaimedDelivery): string {
  return `of event ${id} (company ${company}) to ${handler}`;
}
