import { setTimeout } from 'node:timers/promises';
import { paymentEvent, signedRequest } from 'nestjs-payments/testing';
import pLimit from 'p-limit';
import { monotonicMs } from './application-protocol.js';
import type { PlannedEvent } from './event-plan.js';
import type { PlannedPayment } from './payment-plan.js';

/** The time for which the sender waits for a response before it sends the copy again, in milliseconds. */
const RESPONSE_MS = 3000;
/**
 * The maximum number of requests without a response. Without this limit, repeated requests would overload slow
 * processes.
 */
const MAX_REQUESTS = 100;

type SentRequest = Pick<ReturnType<typeof signedRequest>, 'path' | 'method' | 'headers' | 'body'>;

/** When an event was sent and acknowledged. Times are of the machine's monotonic clock. */
export interface SentEvent {
  firstSentAt: number | null;
  /** When an application first responded 2xx to a copy of the event; `null` if none has. */
  acknowledgedAt: number | null;
}

/** Sends the copies of events like the payments service: it repeats each copy until an application responds 2xx. */
export class Sender {
  readonly sent = new Map<string, SentEvent>();
  readonly #limit = pLimit(MAX_REQUESTS);
  #requests = 0;

  constructor(
    private readonly url: (target: number) => string | null,
    private readonly webhookSecret: string,
  ) {}

  /** The number of webhook requests and purchases that were sent. */
  get requests(): number {
    return this.#requests;
  }

  /** Sends each copy at its time. Resolves once all are acknowledged, or rejects when `signal` aborts. */
  async send(events: readonly PlannedEvent[], signal: AbortSignal): Promise<void> {
    const began = Date.now();
    const copies = events.flatMap((event) => {
      const sent: SentEvent = { firstSentAt: null, acknowledgedAt: null };
      this.sent.set(event.id, sent);
      const { id, eventType, transactionId, reference, actions } = event;
      const first = Math.min(...event.copies.map(({ atMs }) => atMs));
      const timestamp = new Date(began + first).toISOString();
      const body = paymentEvent(
        eventType,
        {
          transactionId,
          ...(reference === undefined ? {} : { externalReference: reference }),
          ...(actions === null ? {} : { actions }),
        },
        { id, timestamp },
      );
      const request = signedRequest(body, { secret: this.webhookSecret });
      return event.copies.map((copy) => ({ ...copy, request, sent }));
    });
    await this.#sendEach(copies, signal, async ({ request, target, sent }) => {
      await this.#sendUntilAcknowledged(request, target, signal, () => {
        sent.firstSentAt ??= monotonicMs();
      });
      if (!signal.aborted) sent.acknowledgedAt ??= monotonicMs();
    });
  }

  /** Sends each purchase at its time, until an application responds 2xx. Rejects when `signal` aborts. */
  async purchase(payments: readonly PlannedPayment[], signal: AbortSignal): Promise<void> {
    await this.#sendEach(payments, signal, ({ reference, target }) => {
      const path = `/purchases/${reference}`;
      const request = { path, method: 'POST' as const, headers: {}, body: Buffer.alloc(0) };
      return this.#sendUntilAcknowledged(request, target, signal);
    });
  }

  /**
   * Sends each item at its time. Only one timer at a time listens to the signal, because an event target with thousands
   * of listeners is slow.
   */
  async #sendEach<T extends { readonly atMs: number }>(
    items: readonly T[],
    signal: AbortSignal,
    send: (item: T) => Promise<void>,
  ): Promise<void> {
    const begin = performance.now();
    const sending: Promise<void>[] = [];
    for (const item of items.toSorted((a, b) => a.atMs - b.atMs)) {
      const waitMs = begin + item.atMs - performance.now();
      if (waitMs > 0) await setTimeout(waitMs, undefined, { signal });
      sending.push(send(item));
    }
    await Promise.all(sending);
    signal.throwIfAborted();
  }

  /** Sends a request to one process after the other, until one responds 2xx or the signal aborts. */
  async #sendUntilAcknowledged(
    request: SentRequest,
    target: number,
    signal: AbortSignal,
    onSend?: () => void,
  ): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      if (await this.#post(target + attempt, request, onSend)) return;
      await setTimeout(Math.min(1500, 150 * 2 ** attempt));
    }
  }

  /** Sends a request when fewer than `MAX_REQUESTS` wait for a response. Returns whether the response was 2xx. */
  #post(target: number, request: SentRequest, onSend?: () => void): Promise<boolean> {
    return this.#limit(async () => {
      const url = this.url(target);
      if (url === null) return false;
      onSend?.();
      this.#requests += 1;
      try {
        const { method, headers, body } = request;
        const response = await fetch(url + request.path, {
          method,
          headers,
          body,
          signal: AbortSignal.timeout(RESPONSE_MS),
        });
        await response.arrayBuffer();
        return response.ok;
      } catch {
        return false;
      }
    });
  }
}
