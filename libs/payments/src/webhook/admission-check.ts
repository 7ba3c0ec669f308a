import type { IncomingHttpHeaders } from 'node:http';
import { describeError, PaymentsError } from '../errors/payments-error.js';

/** What is known of a request before its body is read. */
export interface AdmissionRequest {
  /** Id of the company in the path, or `default`. It may not exist: nothing is verified yet. */
  readonly company: string;
  /** Path and query, as they were sent. */
  readonly url: string;
  /** By lower-case name. The sender can set every one of them to anything. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /**
   * Remote address of the connection, as Node.js gives it: `203.0.113.7`, `2001:db8::1`, or `::ffff:203.0.113.7` for
   * IPv4 on a socket of both. Behind a proxy it is the address of the proxy. `undefined` on a serverless platform.
   */
  readonly address: string | undefined;
  /**
   * The request of Express or Fastify. Behind a proxy, its `ip` is the address of the client if the application has
   * set `trust proxy` (Express) or `trustProxy` (Fastify).
   */
  readonly request: unknown;
}

/** How the application's own check refuses a request. */
export interface AdmissionRefusal {
  /** HTTP status, 400 to 599. Default 403. */
  readonly status?: number;
  /** Value of the header `Retry-After`, in whole seconds, 0 to 86,400. Default: no such header. */
  readonly retryAfterSeconds?: number;
  /** `message` in the body of the answer. Default: a sentence that says that the request was rejected. */
  readonly message?: string;
}

/**
 * The application's own check of a request. It returns nothing (or a promise of nothing) to admit the request.
 *
 * If it throws, rejects, returns anything else, or does not answer within `webhook.bodyTimeoutMs`, the request is
 * refused with 503 and the cause is logged, at most once per minute.
 *
 * @example
 * ```ts
 * const service = new BlockList();
 * service.addSubnet('203.0.113.0', 24);
 *
 * const before: AdmissionCheck = ({ address = '' }) => {
 *   if (!service.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return { status: 403 };
 *   return undefined;
 * };
 * ```
 */
export type AdmissionCheck = (
  request: AdmissionRequest,
  // `void` admits a function without a return statement.
) => AdmissionRefusal | undefined | void | Promise<AdmissionRefusal | undefined | void>;

/** A request that the application's own check refused, or could not judge. */
export class RequestRejected extends PaymentsError {
  constructor(
    /** HTTP status of the answer. */
    readonly status: number,
    message: string,
    /** Value of the header `Retry-After`, in seconds. */
    readonly retryAfterSeconds?: number,
    /** What only the log says. */
    readonly reason = `The check "webhook.before" of the application answered ${status}.`,
  ) {
    super('request_rejected', message);
  }
}

/**
 * Runs the check. Returns a promise if the check answers later.
 *
 * @throws PaymentsError `request_rejected`; the promise rejects with the same.
 */
export function runCheck(
  check: AdmissionCheck,
  request: AdmissionRequest,
): Promise<void> | undefined {
  try {
    const answer: unknown = check(request);
    if (!isPromise(answer)) {
      requireAdmitted(answer);
      return undefined;
    }
    return Promise.resolve(answer).then(requireAdmitted).catch(rejectFailed);
  } catch (error) {
    return rejectFailed(error);
  }
}

function rejectFailed(error: unknown): never {
  throw error instanceof RequestRejected ? error : checkFailed(`failed: ${describeError(error)}`);
}

/** The error for a check that did not admit or refuse the request. */
export function checkFailed(reason: string): RequestRejected {
  return new RequestRejected(
    503,
    "The application's own check of the request failed; the log says why.",
    undefined,
    `The check "webhook.before" of the application ${reason}. The delivery is refused, to be sent again.`,
  );
}

function requireAdmitted(answer: unknown): void {
  if (answer === undefined) return;
  if (typeof answer !== 'object' || answer === null) {
    throw checkFailed('returned neither undefined nor a refusal');
  }
  const { status = 403, retryAfterSeconds, message } = answer as Record<string, unknown>;
  if (!isInteger(status, 400, 599)) {
    throw checkFailed('returned a "status" that is no whole number from 400 to 599');
  }
  if (retryAfterSeconds !== undefined && !isInteger(retryAfterSeconds, 0, 86_400)) {
    throw checkFailed(
      'returned "retryAfterSeconds" that is no whole number of seconds from 0 to 86400',
    );
  }
  if (message !== undefined && typeof message !== 'string') {
    throw checkFailed('returned a "message" that is no string');
  }
  throw new RequestRejected(
    status,
    message ?? 'The application rejected the request.',
    retryAfterSeconds,
  );
}

function isInteger(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}
