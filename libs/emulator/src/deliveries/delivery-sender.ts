import { messageOf } from '../emulator-errors.js';
import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { DeliveryAttempt, DeliveryFailure } from './delivery-attempt.js';
import type { DeliveryRequest } from './delivery-request.js';
import { PrivateHostError } from './public-fetch.js';

export type DeliveryResult = Pick<DeliveryAttempt, 'response' | 'failure'>;

export interface SenderOptions {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: EmulatorClock;
  /** Time limit of the whole attempt, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Whether other machines can reach the emulator. If other machines can reach the emulator, the delivery log keeps
   * less of each response. A log with complete responses would show users of other machines the responses of hosts that
   * only this machine can reach.
   */
  readonly remoteAccess: boolean;
}

/** Maximum number of bytes of a response body that the delivery log keeps. */
const KEPT_BYTES = 4096;
/** Maximum number of bytes of a response body that the delivery log keeps if other machines can reach the emulator. */
const KEPT_BYTES_REMOTE = 256;

/**
 * Sends a delivery once, as a POST request with a timeout for the whole attempt. Does not follow redirects. Never
 * rejects. Only the status of the response decides whether the delivery is acknowledged.
 */
export async function sendDelivery(
  request: DeliveryRequest,
  options: SenderOptions,
  cancel: AbortSignal,
): Promise<DeliveryResult> {
  const timeout = new AbortController();
  const timer = options.clock.setTimeout(() => timeout.abort(), options.timeoutMs);
  try {
    const response = await options.fetch(request.url, {
      method: 'POST',
      headers: request.headers,
      body: request.body,
      redirect: 'manual',
      signal: AbortSignal.any([timeout.signal, cancel]),
    });
    return {
      response: {
        status: response.status,
        headers: keptHeaders(response, options.remoteAccess),
        body: await readStart(response, options.remoteAccess ? KEPT_BYTES_REMOTE : KEPT_BYTES),
      },
      failure: failureOfStatus(response.status),
    };
  } catch (error) {
    const failure = failureOfError(error, options.timeoutMs, timeout.signal, cancel);
    return { response: undefined, failure };
  } finally {
    options.clock.clearTimeout(timer);
  }
}

function keptHeaders({ headers }: Response, remoteAccess: boolean): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(([name]) => !remoteAccess || name === 'content-type'),
  );
}

function failureOfStatus(status: number): DeliveryFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status >= 300 && status < 400) {
    return {
      code: 'redirect',
      message: `the receiver responded with ${status}; the emulator does not follow redirects: set the final URL as the webhook URL`,
    };
  }
  return {
    code: 'status',
    message: `the receiver responded with ${status}; only a 2xx response acknowledges the delivery`,
  };
}

function failureOfError(
  error: unknown,
  timeoutMs: number,
  timeout: AbortSignal,
  cancel: AbortSignal,
): DeliveryFailure {
  if (cancel.aborted) return { code: 'cancelled', message: 'the emulator was reset or closed' };
  if (timeout.aborted) return { code: 'timeout', message: `no response within ${timeoutMs} ms` };
  // The message of fetch is "fetch failed"; its cause has the details.
  const cause = (error as { cause?: unknown }).cause ?? error;
  if (cause instanceof PrivateHostError) return { code: 'private_host', message: cause.message };
  const { code } = cause as { code?: unknown };
  return { code: 'connection', message: [code, messageOf(cause)].filter(Boolean).join(': ') };
}

/**
 * Reads the first `bytes` bytes of a response body. Ignores the rest of the body and errors of reading, because the
 * status of the response is already known.
 */
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
    // Only the status decides whether the delivery is acknowledged, and the status has already been received.
  }
  return Buffer.concat(chunks).subarray(0, bytes).toString('utf8');
}
