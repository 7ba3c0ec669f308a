import { diag, ValueType } from '@opentelemetry/api';
import type { BatchObservableResult, Meter, ObservableGauge } from '@opentelemetry/api';
import { describeError } from '../../errors/payments-error.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { systemRuntime } from '../../runtime/payments-runtime.js';
import type { ObservedInbox } from '../payments-observer.js';

/** The store is read at most once per this many milliseconds, however many readers there are. */
const READ_EVERY_MS = 1000;

/** A reader waits this long for the store at most. Then it gets no gauges. */
const READ_LIMIT_MS = 2000;

/** What the gauges show. */
interface InboxState {
  readonly handlers: Awaited<ReturnType<ObservedInbox['handlers']>>;
  readonly stats: Awaited<ReturnType<ObservedInbox['stats']>>;
  readonly expectations: Awaited<ReturnType<ObservedInbox['expectations']>>;
}

/** Gauges of the inbox, which are read from the store only when a reader collects them. */
export class Gauges {
  readonly #up: ObservableGauge;
  readonly #deliveries: ObservableGauge;
  readonly #oldestAge: ObservableGauge;
  readonly #paused: ObservableGauge;
  readonly #expectations: ObservableGauge;
  /** All handlers seen so far: the SDK for Node repeats the last value of a series that is not observed any more. */
  readonly #handlers = new Set<string>();
  #state: Promise<InboxState | null> | null = null;
  #readAt = 0;
  #busy = false;

  constructor(
    private readonly meter: Meter,
    private readonly inbox: ObservedInbox,
  ) {
    const gauge = (name: string, unit: string, description: string): ObservableGauge =>
      meter.createObservableGauge(`payments.${name}`, {
        unit,
        description,
        valueType: ValueType.DOUBLE,
      });
    this.#up = gauge('store.up', '1', 'Whether the store of the inbox could be read.');
    this.#deliveries = gauge(
      'deliveries',
      '{delivery}',
      'Unfinished deliveries in the store, at most 10,000 of a handler and state.',
    );
    this.#oldestAge = gauge(
      'deliveries.oldest_age',
      's',
      'Time since the receipt of the oldest delivery that is pending or running.',
    );
    this.#paused = gauge('handler.paused', '1', 'Whether a handler is paused.');
    this.#expectations = gauge(
      'expectations',
      '{payment}',
      'Expected payments that are waiting, overdue and not paid, or overdue without an answer; at most 10,000 of each.',
    );
  }

  /** Reports the gauges until the returned function is called. */
  start(): () => void {
    const gauges = [this.#up, this.#deliveries, this.#oldestAge, this.#paused, this.#expectations];
    const observe = async (result: BatchObservableResult): Promise<void> => {
      const state = await this.#recent();
      result.observe(this.#up, state === null ? 0 : 1);
      if (state !== null) this.#observe(state, result);
    };
    this.meter.addBatchObservableCallback(observe, gauges);
    return () => this.meter.removeBatchObservableCallback(observe, gauges);
  }

  #observe({ handlers, stats, expectations }: InboxState, result: BatchObservableResult): void {
    for (const { name } of handlers) this.#handlers.add(name);
    for (const { handler } of stats.deliveries) this.#handlers.add(handler);
    for (const name of this.#handlers) {
      for (const state of ['pending', 'running', 'dead'] as const) {
        const found = stats.deliveries.find((one) => one.handler === name && one.state === state);
        result.observe(this.#deliveries, found?.count ?? 0, {
          'payments.handler': name,
          'payments.state': state,
        });
      }
      const paused = stats.paused.includes('*') || stats.paused.includes(name);
      result.observe(this.#paused, paused ? 1 : 0, { 'payments.handler': name });
    }
    result.observe(this.#oldestAge, (stats.oldestPendingMs ?? 0) / 1000);
    const { waiting, overdueUnpaid, overdueUnknown } = expectations;
    const states = { waiting, overdue_unpaid: overdueUnpaid, overdue_unknown: overdueUnknown };
    for (const [state, { count }] of Object.entries(states)) {
      result.observe(this.#expectations, count, { 'payments.state': state });
    }
  }

  /** The state of the last {@link READ_EVERY_MS}; `null` if the store could not be read. Never rejects. */
  #recent(): Promise<InboxState | null> {
    const now = performance.now();
    if (this.#state === null || (!this.#busy && now - this.#readAt >= READ_EVERY_MS)) {
      this.#readAt = now;
      this.#state = this.#read();
    }
    return this.#state;
  }

  async #read(): Promise<InboxState | null> {
    const late = (): Error => new Error(`The store did not respond within ${READ_LIMIT_MS} ms.`);
    try {
      return await withTimeLimit(this.#readAll(), READ_LIMIT_MS, systemRuntime, late);
    } catch (error) {
      diag.warn(
        `nestjs-payments: the gauges of the inbox have no values, because the store could not be read. ${describeError(error)}`,
      );
      return null;
    }
  }

  async #readAll(): Promise<InboxState> {
    const { inbox } = this;
    this.#busy = true;
    try {
      const read = [inbox.handlers(), inbox.stats(), inbox.expectations()] as const;
      const [handlers, stats, expectations] = await Promise.all(read);
      return { handlers, stats, expectations };
    } finally {
      this.#busy = false;
    }
  }
}
