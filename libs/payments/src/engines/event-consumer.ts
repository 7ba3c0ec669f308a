import { Inject, Injectable } from '@nestjs/common';
import { COMPANIES } from '../companies/company.js';
import type { Companies } from '../companies/company.js';
import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import { describeError, errorCodeOf, PaymentsError } from '../errors/payments-error.js';
import { EventReceiver } from '../inbox/receive/event-receiver.js';
import { WORKER_OPTIONS } from '../inbox/work/worker-options.js';
import type { ResolvedWorkerOptions } from '../inbox/work/worker-options.js';
import { Backoff, backoffMs } from '../runtime/backoff.js';
import { abortableDelay, withTimeLimit } from '../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { Observers } from '../telemetry/observers.js';
import type { ObserverInfo } from '../telemetry/observers.js';
import type { MessageSource, StoreOutcome, TakenMessage } from './engine.js';
import { openEngine } from './engine-connection.js';
import { toEvent } from './engine-message.js';

/** Nest injection token of the option `source`. The value is `null` if the option is not set. */
export const MESSAGE_SOURCE = Symbol('PAYMENTS_MESSAGE_SOURCE');

/** Backoff of the connection to the engine, and of messages that could not be stored. */
const ENGINE_BACKOFF = Object.freeze({ firstMs: 1000, maxMs: 30_000 });

/**
 * The codes of the errors after which the same message can be stored later. After every other `PaymentsError`, the
 * message is rejected.
 */
const RETRIED: ReadonlySet<string> = new Set([
  'directory_unavailable',
  'inbox_unavailable',
  'inbox_full',
  'deadline_passed',
  'handlers_failed',
]);

/** Takes events from an engine, and stores them in the inbox of this process. */
@Injectable()
export class EventConsumer {
  readonly #logger = new ModuleLogger('PaymentEngine');
  readonly #log: ThrottledLog;
  readonly #stop = new AbortController();
  readonly #backoff: Backoff;
  #consuming: Promise<void> = Promise.resolve();

  constructor(
    @Inject(MESSAGE_SOURCE) private readonly source: MessageSource | null,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(COMPANIES) private readonly companies: Companies,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly receiver: EventReceiver,
    private readonly observers: Observers,
  ) {
    this.#log = new ThrottledLog(this.#logger, runtime);
    this.#backoff = new Backoff(runtime, ENGINE_BACKOFF);
  }

  /**
   * Connects to the engine, if the option `source` is set.
   *
   * @throws PaymentsError `engine_unsafe`.
   */
  async open(): Promise<void> {
    if (this.source !== null) await openEngine('source', this.source, this.runtime);
  }

  /** Starts to take messages, if the option `source` is set. */
  start(): void {
    if (this.source !== null) this.#consuming = this.#consume(this.source);
  }

  /**
   * Takes no further message. Resolves when all messages in progress are stored or returned to the engine, or after
   * `worker.drainMs`. If a message was not acknowledged in this time, the engine delivers the message again.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    const { drainMs } = this.options;
    const late = (): Error => new Error(`The engine did not stop within ${drainMs} ms.`);
    try {
      await withTimeLimit(this.#consuming, drainMs, this.runtime, late);
    } catch (error) {
      this.#logger.warn(describeError(error));
    }
    await this.source?.close?.();
  }

  async #consume(source: MessageSource): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      let reason = 'The engine ended the delivery of messages.';
      try {
        await source.consume((message) => this.#store(message), { signal });
      } catch (error) {
        reason = describeError(error);
      }
      if (signal.aborted) return;
      const waitMs = this.#backoff.nextMs();
      const line = `No messages are taken from the engine; the module tries again in ${waitMs} ms. ${reason}`;
      this.#log.warn('consume', line);
      await abortableDelay(waitMs, this.runtime, signal);
    }
  }

  async #store(message: TakenMessage): Promise<StoreOutcome> {
    try {
      const { verify = true } = this.source!;
      const event = await toEvent(message, this.runtime.monotonic(), this.companies, verify);
      await this.receiver.receiveMessage(event, event.event);
      this.#backoff.reset();
      this.#observe(message, 'acknowledged');
      return { action: 'acknowledge' };
    } catch (error) {
      return this.#outcomeOf(error, message);
    }
  }

  #outcomeOf(error: unknown, message: TakenMessage): StoreOutcome {
    const reason = describeError(error);
    if (!(error instanceof PaymentsError) || RETRIED.has(error.code)) {
      const afterMs = backoffMs(ENGINE_BACKOFF, message.deliveries, this.runtime.random());
      const line = `A message of the engine could not be stored, and returns to the engine for ${afterMs} ms. ${reason}`;
      this.#log.warn('retry', line);
      this.#observe(message, 'retried', errorCodeOf(error));
      return { action: 'retry', afterMs };
    }
    const { code } = error;
    this.#log.error(
      code,
      `A message of the engine was rejected and is kept at the engine's place for dead letters. ${reason}`,
    );
    this.#observe(message, 'rejected', code);
    return { action: 'reject', code };
  }

  #observe(
    { deliveries }: TakenMessage,
    outcome: ObserverInfo['messageTaken']['outcome'],
    errorCode: PaymentsErrorCode | null = null,
  ): void {
    if (!this.observers.active) return;
    this.observers.notify('messageTaken', { outcome, errorCode, deliveries });
  }
}
