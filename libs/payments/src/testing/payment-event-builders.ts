import { randomUUID } from 'node:crypto';
import { DEFAULT_COMPANY } from '../companies/company.js';
import type { SigningKey } from '../companies/company.js';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentEventData,
  PaymentEventType,
} from '../events/payment-event.js';
import { commitUnsupported } from '../stores/memory/memory-store.js';
import { signBody } from '../webhook/signature.js';

/** Type of `data` for {@link paymentEvent}: the fields with defaults are optional, all others are required. */
export type EventData<T extends PaymentEventType> = T extends 'transaction.completed'
  ? Partial<PaymentEventData<T>>
  : PaymentEventData<T>;

/** The fields of an event other than its type and `data`. */
export type EnvelopeFields = Partial<Pick<PaymentEvent, 'id' | 'timestamp' | 'metadata'>>;

/**
 * The arguments of {@link paymentEvent} after the type. `data` is required if its type in `PaymentEventMap` has
 * required fields.
 */
export type PaymentEventArguments<T extends PaymentEventType> =
  Partial<EventData<T>> extends EventData<T>
    ? [data?: EventData<T>, envelope?: EnvelopeFields]
    : [data: EventData<T>, envelope?: EnvelopeFields];

/**
 * Builds a complete event, as a handler receives it and as the service sends it.
 *
 * For a `transaction.completed` event, the fields of `data` replace those of a realistic payment with a new transaction
 * id. For any other type, `data` is used as given (default: an empty object).
 *
 * @param type the event type. `PaymentEventMap` gives the type of `data`.
 * @param rest `data`, then `id` (default: a new UUID), `timestamp` (default: now) and `metadata` (default: empty).
 * @example
 * ```ts
 * const event = paymentEvent('transaction.completed', { amount: 350, externalReference: 'order-1' });
 * const same = paymentEvent('transaction.completed', { amount: 350 }, { id: event.id });
 * ```
 */
export function paymentEvent<T extends PaymentEventType>(
  type: T,
  ...rest: PaymentEventArguments<T>
): PaymentEvent<T> {
  const [data, envelope] = rest;
  return {
    id: randomUUID(),
    eventType: type,
    timestamp: new Date().toISOString(),
    data: {
      ...(type === 'transaction.completed' ? completedPayment() : {}),
      ...data,
    } as PaymentEventData<T>,
    metadata: {},
    ...envelope,
  };
}

function completedPayment(): PaymentEventData<'transaction.completed'> {
  return {
    transactionId: randomUUID(),
    status: 'complete',
    amount: 1500,
    accountReference: 'INV-1001',
    externalReference: 'order-77',
  };
}

/**
 * Builds a complete {@link PaymentEventContext} for the unit test of a handler. You can set every field.
 *
 * Without `commit`, `context.commit()` rejects with `commit_unsupported`, as it does with the memory inbox.
 *
 * @typeParam Tx the transaction of your inbox, for example `PostgresTransaction`.
 * @param fields replace the defaults: company `default`, handler `transaction.completed#handle`, attempt 1, received now,
 *   an empty JSON object as `raw`, a `newerHandled()` that resolves with `false`, and a signal that is not aborted.
 * @example
 * ```ts
 * await orders.markPaid(paymentEvent('transaction.completed'), handlerContext({ attempt: 2 }));
 *
 * const tx = { query: async () => ({ rows: [] }) } as unknown as PostgresTransaction;
 * const context = handlerContext<PostgresTransaction>({ commit: async (work) => work(tx) });
 * ```
 */
export function handlerContext<Tx = unknown>(
  fields: Partial<PaymentEventContext<Tx>> = {},
): PaymentEventContext<Tx> {
  return {
    company: DEFAULT_COMPANY,
    handler: 'transaction.completed#handle',
    attempt: 1,
    receivedAt: new Date(),
    source: 'webhook',
    raw: Buffer.from('{}'),
    newerHandled: async () => false,
    signal: new AbortController().signal,
    commit: () => Promise.reject(commitUnsupported()),
    ...fields,
  };
}

/** An event, or a whole request body as text or bytes. A body is signed unchanged. */
export type WebhookBody = PaymentEvent | string | Uint8Array;

/** Secret and path for {@link signedRequest}. */
export interface SignedRequestOptions {
  /** The webhook secret of the company. */
  secret: string | SigningKey;
  /** Path of the application's webhook route. Default `/webhooks/payments`. */
  path?: string;
}

/** A webhook request, as the service sends it. You can pass the request to `fetch()` as the second argument. */
export interface SignedRequest {
  readonly method: 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that were signed. */
  readonly body: Buffer<ArrayBuffer>;
  /** The {@link body} as text, for clients such as supertest that serialize a Buffer as JSON. */
  readonly text: string;
}

/**
 * Signs an event as the service does, for a test that sends the request itself. `deliver()` also finds the route and
 * the secret, and sends the request.
 *
 * @throws TypeError if the secret is empty.
 * @example
 * ```ts
 * const { path, headers, text } = signedRequest(paymentEvent('transaction.completed'), { secret: 'whsec_1' });
 * await request(app.getHttpServer()).post(path).set(headers).send(text).expect(200); // supertest
 * ```
 */
export function signedRequest(
  event: WebhookBody,
  { secret, path = '/webhooks/payments' }: SignedRequestOptions,
): SignedRequest {
  if (!secret) throw new TypeError('signedRequest() needs the webhook secret to sign with.');
  const raw = typeof event === 'string' || event instanceof Uint8Array;
  const body = Buffer.from(raw ? (event as string) : JSON.stringify(event));
  return {
    method: 'POST',
    path,
    headers: {
      'Content-Type': 'application/json',
      'X-Webhook-Event': eventTypeOf(body),
      'X-Webhook-Signature': signBody(body, secret),
      'User-Agent': 'nestjs-payments-testing-Webhook/1.0',
    },
    body,
    text: body.toString(),
  };
}

function eventTypeOf(body: Buffer): string {
  try {
    const { eventType } = JSON.parse(body.toString()) as { eventType?: unknown };
    return typeof eventType === 'string' && /^[\x20-\x7e]+$/.test(eventType)
      ? eventType
      : 'unknown';
  } catch {
    return 'unknown';
  }
}
