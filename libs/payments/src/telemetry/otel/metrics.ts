import { diag, ValueType } from '@opentelemetry/api';
import type {
  Attributes,
  BatchObservableResult,
  Counter,
  Histogram,
  Meter,
  ObservableGauge,
} from '@opentelemetry/api';
import { describeError } from '../../errors/payments-error.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { systemRuntime } from '../../runtime/payments-runtime.js';
import type { ObservedInbox, PaymentsObserver } from '../observers.js';

/** Upper bounds of the buckets of durations, in seconds. */
const SHORT = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/**
 * Upper bounds of the buckets of times that include retries, in seconds. The largest is three days, because retries
 * last for days.
 */
const LONG = [...SHORT.slice(1), 300, 900, 3600, 10_800, 43_200, 86_400, 259_200];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The attribute value that replaces all values that are not reported by name. */
const OTHER = '_OTHER';

/** Maximum number of event types of the service that one process reports by name. */
const MAX_EVENT_TYPES = 50;
const MAX_COMPANIES = 1000;

const MEASURED = [
  'eventReceived',
  'eventDuplicate',
  'requestRejected',
  'messageTaken',
  'attemptEnded',
  'deliveriesRedriven',
  'tokenFetched',
  'apiCallEnded',
  'expectationFulfilled',
  'expectationOverdue',
  'pollEnded',
] as const;
type Measurements = Required<Pick<PaymentsObserver, (typeof MEASURED)[number]>>;

/**
 * An observer that records counters and histograms. The observer creates all counters and histograms when it is first
 * called. Counters and histograms that are created before the SDK has started never record anything.
 */
export function measurements(meter: () => Meter, withCompany: boolean): Measurements {
  let created: Measurements | undefined;
  const methods = MEASURED.map((method) => [
    method,
    (info: never) => (created ??= createMeasurements(meter(), withCompany))[method](info),
  ]);
  return Object.fromEntries(methods) as Measurements;
}

function createMeasurements(meter: Meter, withCompany: boolean): Measurements {
  const counter = (name: string, unit: string, description: string): Counter =>
    meter.createCounter(`payments.${name}`, {
      unit: `{${unit}}`,
      description,
      valueType: ValueType.INT,
    });
  const duration = (name: string, description: string, buckets = SHORT): Histogram =>
    meter.createHistogram(`payments.${name}`, {
      unit: 's',
      description,
      advice: { explicitBucketBoundaries: buckets },
    });

  const received = counter('events.received', 'event', 'New events that were stored.');
  const duplicates = counter('events.duplicates', 'event', 'Events that were received again.');
  const rejected = counter(
    'requests.rejected',
    'request',
    'Webhook requests without a 2xx response.',
  );
  const messages = counter(
    'engine.messages',
    'message',
    'Messages that were taken from the engine.',
  );
  const redeliveries = counter(
    'engine.redeliveries',
    'message',
    'Messages that the engine delivered again.',
  );
  const receiveTime = duration('receive.duration', 'How long the inbox took to store an event.');
  const attempts = counter('attempts', 'attempt', 'Attempts of handlers that ended.');
  const processTime = duration('process.duration', 'How long attempts of handlers took.');
  const deliveryTime = duration(
    'delivery.duration',
    'From the receipt of an event until its handler succeeded.',
    LONG,
  );
  const redriven = counter('deliveries.redriven', 'delivery', 'Deliveries that operators redrove.');
  const tokens = counter('token.fetches', 'request', 'Token requests.');
  const callTime = duration(
    'api.call.duration',
    'How long calls of the payments service took, with retries.',
  );
  const polls = counter('polls', 'poll', 'Polls of the payments service about expected payments.');
  const fulfilled = counter(
    'expectations.fulfilled',
    'payment',
    'Expected payments for which an event arrived.',
  );
  const becameOverdue = counter(
    'expectations.became_overdue',
    'payment',
    'Expected payments that became overdue.',
  );

  const eventTypes = new BoundedValues(MAX_EVENT_TYPES);
  const companies = new BoundedValues(MAX_COMPANIES);
  const of = (company: string | null): Attributes =>
    withCompany && company !== null ? { 'payments.company': companies.of(company) } : {};

  return {
    eventReceived({ company, eventType, source, status, durationMs }) {
      const attributes = { ...of(company), 'payments.source': source };
      received.add(1, {
        ...attributes,
        'payments.event_type': eventTypes.of(eventType),
        'payments.status': status,
      });
      receiveTime.record(durationMs / 1000, attributes);
    },
    eventDuplicate({ company, source, reason, durationMs }) {
      const attributes = { ...of(company), 'payments.source': source };
      duplicates.add(1, { ...attributes, 'payments.reason': reason });
      receiveTime.record(durationMs / 1000, attributes);
    },
    requestRejected: ({ company, code }) => rejected.add(1, { ...of(company), 'error.type': code }),
    messageTaken({ outcome, errorCode, deliveries }) {
      const failed = { 'payments.outcome': outcome, 'error.type': errorCode ?? OTHER };
      messages.add(1, outcome === 'acknowledged' ? { 'payments.outcome': outcome } : failed);
      redeliveries.add(deliveries > 1 ? 1 : 0);
    },
    attemptEnded({ company, handler, outcome, error, errorCode, ageMs, durationMs }) {
      const attributes = { ...of(company), 'payments.handler': handler };
      const ended = { ...attributes, 'payments.outcome': outcome };
      attempts.add(1, error === null ? ended : { ...ended, 'error.type': errorCode ?? OTHER });
      processTime.record(durationMs / 1000, ended);
      if (outcome === 'done') deliveryTime.record((ageMs + durationMs) / 1000, attributes);
    },
    deliveriesRedriven: ({ company, handler, deliveries }) =>
      redriven.add(deliveries, {
        ...of(company),
        ...(handler !== null && { 'payments.handler': handler }),
      }),
    tokenFetched: ({ company, errorCode }) =>
      tokens.add(1, { ...of(company), ...errorType(errorCode) }),
    apiCallEnded: ({ company, method, status, errorCode, durationMs }) =>
      callTime.record(durationMs / 1000, {
        ...of(company),
        'http.request.method': METHODS.has(method) ? method : OTHER,
        'payments.status_class': status === null ? 'none' : `${Math.floor(status / 100)}xx`,
        ...errorType(errorCode),
      }),
    expectationFulfilled: ({ company, by }) =>
      fulfilled.add(1, { ...of(company), 'payments.source': by }),
    expectationOverdue: ({ company }) => becameOverdue.add(1, of(company)),
    pollEnded: ({ company, result }) => polls.add(1, { ...of(company), 'payments.result': result }),
  };
}

function errorType(type: string | null): Attributes {
  return type === null ? {} : { 'error.type': type };
}

/** Keeps the first `max` values, and replaces all others by `_OTHER`, so that the number of values is bounded. */
class BoundedValues {
  readonly #named = new Set<string>();

  constructor(private readonly max: number) {}

  of(value: string): string {
    if (this.#named.has(value)) return value;
    if (this.#named.size >= this.max) return OTHER;
    this.#named.add(value);
    return value;
  }
}

/** Minimum time between two reads of the store, in milliseconds, for any number of readers. */
const READ_EVERY_MS = 1000;

/** Maximum time that a reader waits for the store, in milliseconds. After this time, the reader gets no gauges. */
const READ_LIMIT_MS = 2000;

/** Reports gauges until the returned function is called. Reads the store only when a reader collects the gauges. */
export function startGauges(meter: Meter, inbox: ObservedInbox): () => void {
  const gauge = (name: string, unit: string, description: string): ObservableGauge =>
    meter.createObservableGauge(`payments.${name}`, {
      unit,
      description,
      valueType: ValueType.DOUBLE,
    });
  const up = gauge('store.up', '1', 'Whether the store of the inbox could be read.');
  const unfinished = gauge(
    'deliveries',
    '{delivery}',
    'Unfinished deliveries in the store, at most 10,000 of a handler and state.',
  );
  const oldestAge = gauge(
    'deliveries.oldest_age',
    's',
    'Time since the receipt of the oldest delivery that is pending or running.',
  );
  const paused = gauge('handler.paused', '1', 'Whether a handler is paused.');
  const expected = gauge(
    'expectations',
    '{payment}',
    'Expected payments that are waiting, overdue and not paid, or overdue without an answer; at most 10,000 of each.',
  );
  const engineUp = gauge('engine.up', '1', 'Whether the engine answers.');
  const engineLag = gauge(
    'engine.lag',
    '{message}',
    'Messages that wait at the engine for the worker service.',
  );
  const deadLetters = gauge(
    'engine.dead_letters',
    '{message}',
    'Dead letters of the worker service that the engine stores.',
  );
  const reader = new InboxReader(inbox);
  /**
   * All handlers seen so far. Each of these handlers is always observed, because the SDK for Node repeats the last
   * value of a series that is not observed any more.
   */
  const names = new Set<string>();
  const observe = async (result: BatchObservableResult): Promise<void> => {
    const [state, engine] = await Promise.all([reader.recent(), inbox.engine()]);
    if (engine !== null) {
      result.observe(engineUp, engine.connected ? 1 : 0);
      if (engine.lag !== undefined) result.observe(engineLag, engine.lag);
      if (engine.deadLetters !== undefined) result.observe(deadLetters, engine.deadLetters);
    }
    result.observe(up, state === null ? 0 : 1);
    if (state === null) return;
    const [handlers, stats, { waiting, overdueUnpaid, overdueUnknown }] = state;
    for (const { name } of handlers) names.add(name);
    for (const { handler } of stats.deliveries) names.add(handler);
    for (const name of names) {
      for (const state of ['pending', 'running', 'dead'] as const) {
        const found = stats.deliveries.find((one) => one.handler === name && one.state === state);
        result.observe(unfinished, found?.count ?? 0, {
          'payments.handler': name,
          'payments.state': state,
        });
      }
      const isPaused = stats.paused.some(({ handler }) => handler === name || handler === '*');
      result.observe(paused, isPaused ? 1 : 0, { 'payments.handler': name });
    }
    result.observe(oldestAge, (stats.oldestPendingMs ?? 0) / 1000);
    const states = { waiting, overdue_unpaid: overdueUnpaid, overdue_unknown: overdueUnknown };
    for (const [state, { count }] of Object.entries(states)) {
      result.observe(expected, count, { 'payments.state': state });
    }
  };
  const gauges = [up, unfinished, oldestAge, paused, expected, engineUp, engineLag, deadLetters];
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}

type InboxState = Awaited<ReturnType<InboxReader['readAll']>>;

/** Reads the store for the gauges, at most once per {@link READ_EVERY_MS} and one read at a time. */
class InboxReader {
  #state: Promise<InboxState | null> | null = null;
  #readAt = 0;
  #busy = false;

  constructor(private readonly inbox: ObservedInbox) {}

  /**
   * Returns a state that is at most {@link READ_EVERY_MS} milliseconds old; `null` if the store could not be read.
   * Never rejects.
   */
  recent(): Promise<InboxState | null> {
    const now = performance.now();
    if (this.#state === null || (!this.#busy && now - this.#readAt >= READ_EVERY_MS)) {
      this.#readAt = now;
      this.#state = this.#read();
    }
    return this.#state;
  }

  async #read(): Promise<InboxState | null> {
    try {
      return await withTimeLimit(this.readAll(), READ_LIMIT_MS, systemRuntime);
    } catch (error) {
      diag.warn(
        `nestjs-payments: the gauges of the inbox have no values, because the store could not be read. ${describeError(error)}`,
      );
      return null;
    }
  }

  async readAll() {
    const { inbox } = this;
    this.#busy = true;
    try {
      return await Promise.all([inbox.handlers(), inbox.stats(), inbox.expectations()] as const);
    } finally {
      this.#busy = false;
    }
  }
}
