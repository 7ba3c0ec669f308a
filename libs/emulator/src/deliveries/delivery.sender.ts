import type { EmulatorClock } from '../clock/emulator.clock.js';
import { messageOf } from '../emulator.errors.js';
import type { DeliveryFailure, DeliveryRecord } from './delivery.record.js';
import { PrivateHostError } from './public-fetch.js';

/** A delivery ready to go. */
export interface OutgoingDelivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** How an attempt ended. */
export type DeliveryOutcome = Pick<DeliveryRecord, 'answer' | 'failure'>;

/** What sending takes besides the delivery. */
export interface SenderTools {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: EmulatorClock;
  /** Milliseconds for the whole attempt. */
  readonly timeoutMs: number;
  /** Whether others can reach the emulator, and could read the answers of hosts that they cannot reach themselves. */
  readonly exposed: boolean;
}

/** Bytes of an answer's body that the log keeps: usually, and if others can reach the emulator. */
const SHOWN_BYTES = 4096;
const SHOWN_BYTES_EXPOSED = 256;

/**
 * Sends a delivery once: POST, no redirects, a timeout over the whole attempt (section 6 of the
 * service's page). Never rejects; the answer's status alone decides.
 */
export async function sendDelivery(
  delivery: OutgoingDelivery,
  tools: SenderTools,
  cancel: AbortSignal,
): Promise<DeliveryOutcome> {
  const timeout = new AbortController();
  const timer = tools.clock.setTimeout(() => timeout.abort(), tools.timeoutMs);
  try {
    const response = await tools.fetch(delivery.url, {
      method: 'POST',
      headers: delivery.headers,
      body: delivery.body,
      redirect: 'manual',
      signal: AbortSignal.any([timeout.signal, cancel]),
    });
    return {
      answer: {
        status: response.status,
        headers: shownHeaders(response, tools.exposed),
        body: await readStart(response, tools.exposed ? SHOWN_BYTES_EXPOSED : SHOWN_BYTES),
      },
      failure: judge(response.status),
    };
  } catch (error) {
    return { answer: undefined, failure: explain(error, tools.timeoutMs, timeout.signal, cancel) };
  } finally {
    tools.clock.clearTimeout(timer);
  }
}

function shownHeaders({ headers }: Response, exposed: boolean): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !exposed || name === 'content-type'));
}

function judge(status: number): DeliveryFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status >= 300 && status < 400) {
    return {
      code: 'redirect',
      message: `answered ${status}; redirects are not followed: configure the final URL`,
    };
  }
  return { code: 'status', message: `answered ${status}; only a 2xx acknowledges` };
}

function explain(
  error: unknown,
  timeoutMs: number,
  timeout: AbortSignal,
  cancel: AbortSignal,
): DeliveryFailure {
  if (cancel.aborted) return { code: 'cancelled', message: 'the emulator was reset or closed' };
  if (timeout.aborted) return { code: 'timeout', message: `no answer within ${timeoutMs} ms` };
  // fetch itself says "fetch failed"; what failed is in the cause.
  const cause = (error as { cause?: unknown }).cause ?? error;
  if (cause instanceof PrivateHostError) return { code: 'private_host', message: cause.message };
  const { code } = cause as { code?: unknown };
  return { code: 'connection', message: [code, messageOf(cause)].filter(Boolean).join(': ') };
}

/** The first bytes of the body. What comes after, and a body that breaks off, is of no interest. */
async function readStart(response: Response, bytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk as Uint8Array);
      length += (chunk as Uint8Array).length;
      if (length >= bytes) break;
    }
  } catch {
    // The status has come, and it decides.
  }
  return Buffer.concat(chunks).subarray(0, bytes).toString('utf8');
}
