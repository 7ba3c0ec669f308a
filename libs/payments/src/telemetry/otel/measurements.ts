import { ValueType } from '@opentelemetry/api';
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api';
import type { PaymentsObserver } from '../payments-observer.js';

/** Upper bounds of the buckets of durations, in seconds. */
const SHORT = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Up to three days, because retries last for days. */
const LONG = [...SHORT.slice(1), 300, 900, 3600, 10_800, 43_200, 86_400, 259_200];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The value of an attribute for all values that have no value of their own. */
const OTHER = '_OTHER';

/** Event types of the service that are named, in one process. */
const MAX_EVENT_TYPES = 50;
const MAX_COMPANIES = 1000;

type Measured =
  | 'eventReceived'
  | 'eventDuplicate'
  | 'requestRejected'
  | 'attemptEnded'
  | 'deliveriesRedriven'
  | 'tokenFetched'
  | 'apiCallEnded'
  | 'expectationFulfilled'
  | 'expectationOverdue'
  | 'pollEnded';

/** An observer that records counters and histograms. */
export type Measurements = Required<Pick<PaymentsObserver, Measured>>;

/** Creates the counters and histograms. */
export function createMeasurements(meter: Meter, withCompany: boolean): Measurements {
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

/** Names the first values. All others are `_OTHER`, so that their number is bounded. */
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
