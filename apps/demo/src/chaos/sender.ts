import { setTimeout } from 'node:timers/promises';
import { paymentEvent, signedRequest } from 'nestjs-payments/testing';
import { machineMs } from './application-protocol.js';
import type { PlannedEvent } from './event-plan.js';

/** For how long a copy waits for its answer before it is sent again, in milliseconds. */
const ANSWER_MS = 3000;

/** What the sender knows of an event. Times are of the machine's monotonic clock. */
export interface SentEvent {
  firstSentAt: number | null;
  /** When a copy of it was first answered 2xx; `null` if none was. */
  acknowledgedAt: number | null;
}

/** Sends the copies of events like the service: again and again, until each is answered 2xx. */
export class Sender {
  readonly sent = new Map<string, SentEvent>();
  #requests = 0;

  constructor(
    private readonly url: (target: number) => string | null,
    private readonly webhookSecret: string,
  ) {}

  /** How many requests were sent. */
  get requests(): number {
    return this.#requests;
  }

  /** Sends each copy at its time. Resolves once all are acknowledged, or rejects when `signal` aborts. */
  async send(
    events: readonly PlannedEvent[],
    faultsOver: Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const begin = performance.now();
    const began = Date.now();
    await Promise.all(
      events.map(async (event) => {
        this.sent.set(event.id, { firstSentAt: null, acknowledgedAt: null });
        const { id, eventType, transactionId, actions, afterFaults } = event;
        const first = Math.min(...event.copies.map(({ atMs }) => atMs));
        const timestamp = new Date(began + first).toISOString();
        const body = paymentEvent(
          eventType,
          { transactionId, ...(actions === null ? {} : { actions }) },
          { id, timestamp },
        );
        const request = signedRequest(body, { secret: this.webhookSecret });
        if (afterFaults) await faultsOver;
        const beganAt = afterFaults ? performance.now() : begin;
        await Promise.all(
          event.copies.map(async ({ atMs, target }) => {
            await setTimeout(Math.max(0, beganAt + atMs - performance.now()), undefined, {
              signal,
            });
            await this.#deliver(id, request, target, signal);
          }),
        );
      }),
    );
  }

  async #deliver(
    id: string,
    request: ReturnType<typeof signedRequest>,
    target: number,
    signal: AbortSignal,
  ): Promise<void> {
    const sent = this.sent.get(id)!;
    for (let attempt = 0; ; attempt += 1) {
      const url = this.url(target + attempt);
      if (url !== null) {
        sent.firstSentAt ??= machineMs();
        if (await this.#post(url, request)) {
          sent.acknowledgedAt ??= machineMs();
          return;
        }
      }
      await setTimeout(Math.min(1500, 150 * 2 ** attempt), undefined, { signal });
    }
  }

  async #post(url: string, request: ReturnType<typeof signedRequest>): Promise<boolean> {
    this.#requests += 1;
    try {
      const { method, headers, body } = request;
      const answer = await fetch(url + request.path, {
        method,
        headers,
        body,
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      await answer.arrayBuffer();
      return answer.ok;
    } catch {
      return false;
    }
  }
}
