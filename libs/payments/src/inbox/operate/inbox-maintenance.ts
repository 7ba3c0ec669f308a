import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { describeError } from '../../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { POLL_HANDLER } from '../store/expectation-store.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import type { InboxStore } from '../store/inbox-store.js';
import { WORKER_OPTIONS } from '../work/worker-options.js';
import type { ResolvedWorkerOptions } from '../work/worker-options.js';

/** Maximum number of events per batch. The batches are small, so that they do not delay the receipt of new events. */
const BATCH = 500;
/** Pause between two batches, in milliseconds. During the pause, the store can receive events and claim deliveries. */
const BETWEEN_BATCHES_MS = 20;
const BETWEEN_ROUNDS_MS = 60_000;
/**
 * A handler is orphaned if no process that registers it has run for this many milliseconds. A deployment takes less
 * time.
 */
const ORPHANED_MS = 3_600_000;
const REPORT_EVERY_MS = 86_400_000;

/** Maximum number of handlers in one log line. */
const MAX_LISTED = 10;

/**
 * Deletes old events in small batches, according to `retainEventsMs` and `retainIdsMs`, and reports orphaned handlers,
 * which no process registers any more. The maintenance runs once a minute in each process.
 */
@Injectable()
export class InboxMaintenance {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #failures: ThrottledLog;
  /** The time at which each orphaned handler was last reported, on the monotonic clock. */
  readonly #reported = new Map<string, number>();
  #cancel: () => void = () => {};
  #round: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly registry: HandlerRegistry,
    private readonly catalog: HandlerCatalogCache,
  ) {
    this.#failures = new ThrottledLog(this.#logger, runtime);
  }

  start(): void {
    this.#round = this.#try('find handlers that no process registers', () => this.#reportAtStart());
    this.#next(BETWEEN_ROUNDS_MS, () => this.#startRound());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#round;
  }

  prune(limit: number): Promise<number> {
    const { retainEventsMs, retainIdsMs } = this.options;
    return this.store.prune({ bodiesMs: retainEventsMs, tombstonesMs: retainIdsMs, limit });
  }

  async #startRound(): Promise<void> {
    await this.#try('find handlers that no process registers', () => this.#reportOrphans());
    await this.#pruneBatch();
  }

  async #pruneBatch(): Promise<void> {
    const changed = await this.#try('prune old events', () => this.prune(BATCH));
    if (changed === BATCH) this.#next(BETWEEN_BATCHES_MS, () => this.#pruneBatch());
    else this.#next(BETWEEN_ROUNDS_MS, () => this.#startRound());
  }

  #next(ms: number, work: () => Promise<void>): void {
    if (this.#stopped) return;
    this.#cancel = this.runtime.schedule(ms, () => {
      this.#round = work();
    });
  }

  /** Resolves with the result of `work`, or with `undefined` if the store failed. The next round runs `work` again. */
  async #try<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const line = `The payment inbox could not ${what}. It tries again in a minute. ${describeError(error)}`;
      this.#failures.warn(what, line);
      return undefined;
    }
  }

  /**
   * At the start, logs the handlers that only other processes registered. If a handler method was renamed, this log
   * line is the first hint, because an orphaned handler is reported only after an hour.
   */
  async #reportAtStart(): Promise<void> {
    await this.#reportOrphans();
    const others = this.catalog.current.handlers
      .filter(({ name }) => this.registry.get(name) === undefined)
      .filter(({ name }) => name !== POLL_HANDLER && !this.#reported.has(name))
      .map(({ name }) => JSON.stringify(name));
    if (others.length === 0) return;
    const rest = others.length - MAX_LISTED;
    const names = others.slice(0, MAX_LISTED).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
    this.#logger.log(
      `The inbox also stores events for handlers that this process does not register: ${names}. If no other process ` +
        'registers such a handler, its deliveries wait. If the handler was renamed, give it its old name: ' +
        "@OnPaymentEvent(…, { name: '…' }). If the handler was deleted, call PaymentInbox.forgetHandler('…'), which " +
        'skips its deliveries.',
    );
  }

  async #reportOrphans(): Promise<void> {
    const { handlers } = await this.catalog.refresh();
    const seenBefore = this.runtime.now() - ORPHANED_MS;
    const orphans = handlers
      .filter(({ name }) => this.registry.get(name) === undefined)
      .filter(({ lastSeenAt }) => lastSeenAt.getTime() < seenBefore)
      .filter(({ name }) => this.#isReportDue(name));
    if (orphans.length === 0) return;
    const { deliveries } = await this.store.stats();
    for (const { name, lastSeenAt } of orphans) {
      if (name === POLL_HANDLER) {
        await this.#reportNoPolls(lastSeenAt);
        continue;
      }
      const waiting = deliveries.find(
        ({ handler, state }) => handler === name && state === 'pending',
      );
      const count = `${waiting?.count ?? 0}${waiting?.more ? '+' : ''}`;
      this.#logger.warn(
        `No process with the handler "${name}" has run since ${lastSeenAt.toISOString()}, but events are still stored ` +
          `for this handler; ${count} deliveries wait. If its event types or its method's name changed, give the new ` +
          `handler the old name: @OnPaymentEvent(…, { name: '${name}' }). If the handler was deleted, remove it from ` +
          `the inbox: PaymentInbox.forgetHandler('${name}').`,
        { handler: name },
      );
      this.#reported.set(name, this.runtime.monotonic());
    }
  }

  async #reportNoPolls(lastSeenAt: Date): Promise<void> {
    const { waiting } = await this.store.expectations.counts();
    if (waiting.count === 0) return;
    this.#logger.warn(
      'No process has asked the service about expected payments since ' +
        `${lastSeenAt.toISOString()}; ${waiting.count}${waiting.more ? '+' : ''} expectations wait. Set the option ` +
        '"reconcile" in at least one process, or cancel the expectations with PaymentExpectations.cancel().',
    );
    this.#reported.set(POLL_HANDLER, this.runtime.monotonic());
  }

  #isReportDue(name: string): boolean {
    const reported = this.#reported.get(name);
    return reported === undefined || this.runtime.monotonic() - reported >= REPORT_EVERY_MS;
  }
}
