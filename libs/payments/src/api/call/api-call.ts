import type { ResolvedCompany } from '../../companies/company.js';
import { backoffMs } from '../../runtime/backoff.js';
import { abortableDelay, Deadline } from '../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ResolvedApiOptions, RetryPolicy } from '../api-options.js';
import {
  callUrl,
  isSuccess,
  parseBody,
  parseRetryAfterMs,
  requestIdOf,
  shownHeaders,
  type HttpFailure,
  type HttpRequest,
  type HttpResponse,
} from '../http/http-exchange.js';
import type { ApiResponse } from '../payments-api.js';
import type { AccessToken } from '../token/access-token.js';
import {
  authenticationError,
  endedError,
  failureError,
  invalidBodyError,
  redirectError,
  statusError,
  type CallFacts,
  type PaymentsApiError,
} from './api-error.js';
import type { CallRequest } from './call-request.js';

/** Dependencies of an {@link ApiCall}. */
export interface ApiCallParts {
  token: AccessToken;
  send: (request: HttpRequest) => Promise<HttpResponse | HttpFailure>;
  options: ResolvedApiOptions;
  runtime: PaymentsRuntime;
}

/** One call with all its attempts, from the token to the response. */
export class ApiCall {
  readonly #request: CallRequest;
  readonly #company: ResolvedCompany;
  readonly #deadline: Deadline;
  readonly #parts: ApiCallParts;
  readonly #url: string;
  #attempts = 0;
  #failures = 0;
  /** The token that the service rejected with 401 during this call. */
  #rejectedToken: string | undefined;

  constructor(
    request: CallRequest,
    company: ResolvedCompany,
    deadline: Deadline,
    parts: ApiCallParts,
  ) {
    this.#request = request;
    this.#company = company;
    this.#deadline = deadline;
    this.#parts = parts;
    this.#url = callUrl(company.baseUrl, request.pathAndQuery);
  }

  /** How many requests were sent, without token requests. */
  get attempts(): number {
    return this.#attempts;
  }

  /** Makes attempts until one succeeds. Rejects if an attempt fails and no further attempt is allowed. */
  async run(): Promise<ApiResponse> {
    for (;;) {
      const token = await this.#token();
      const { result, timedOut } = await this.#attempt(token);
      if (result.kind === 'failure') {
        await this.#afterFailure(result, timedOut);
      } else if (result.status === 401) {
        await this.#afterRejection(result, token);
      } else {
        this.#acceptToken(result.status, token);
        if (isSuccess(result.status)) return this.#response(result, token);
        await this.#afterStatus(result, token);
      }
    }
  }

  async #token(): Promise<string> {
    try {
      if (this.#deadline.ended) throw endedError(this.#facts(), this.#deadline.ended, false);
      return await this.#parts.token.get(this.#deadline.signal);
    } catch (error) {
      throw this.#deadline.ended ? endedError(this.#facts(), this.#deadline.ended, false) : error;
    }
  }

  async #attempt(
    token: string,
  ): Promise<{ result: HttpResponse | HttpFailure; timedOut: boolean }> {
    const { runtime, options, send } = this.#parts;
    const { method, headers, body } = this.#request;
    this.#attempts += 1;
    const deadline = new Deadline(runtime, options.attemptTimeoutMs, this.#deadline.signal);
    const result = await send({
      method,
      url: this.#url,
      headers: { ...headers, ...this.#tokenHeaders(token) },
      body,
      signal: deadline.signal,
      maxBytes: options.maxResponseBytes,
    });
    deadline.release();
    return { result, timedOut: deadline.ended === 'timeout' };
  }

  /** Sets one of the two token headers. `false` for the other one also removes a header that axios would add. */
  #tokenHeaders(token: string): Record<string, string | false> {
    const value = `Bearer ${token}`;
    return this.#parts.options.tokenHeader === 'authorization'
      ? { authorization: value, 'x-auth-token': false }
      : { authorization: false, 'x-auth-token': value };
  }

  async #afterFailure(failure: HttpFailure, timedOut: boolean): Promise<void> {
    if (this.#deadline.ended)
      throw endedError(this.#facts(), this.#deadline.ended, !failure.unsent);
    const error = failureError(this.#facts(), failure, timedOut);
    const transient = timedOut || failure.reason === 'connection_failed';
    if (!transient || !(this.#request.safe || failure.unsent)) throw error;
    await this.#retry(error);
  }

  async #afterRejection(response: HttpResponse, token: string): Promise<void> {
    const error = authenticationError(
      this.#responseFacts(response, token),
      new URL(this.#company.baseUrl).host,
    );
    this.#parts.token.invalidate(token);
    if (this.#rejectedToken !== undefined) throw error;
    this.#rejectedToken = token;
    if ((await this.#token()) === token) throw error;
  }

  async #afterStatus(response: HttpResponse, token: string): Promise<void> {
    const facts = this.#responseFacts(response, token);
    const { status } = response;
    if (status >= 300 && status <= 399) {
      throw redirectError(facts, response.headers['location'], this.#url);
    }
    const error = statusError(facts);
    const retryable = isRetryableStatus(this.#parts.options.retry, status);
    if (!this.#request.safe || !retryable) throw error;
    await this.#retry(error);
  }

  /** Waits until the next attempt is due. Throws `error` if there is no further attempt. */
  async #retry(error: PaymentsApiError): Promise<void> {
    const { runtime, options } = this.#parts;
    this.#failures += 1;
    if (this.#failures >= options.retry.attempts) throw error;
    const { retryAfterMs = 0 } = error;
    if (this.#request.obeyRetryAfter && retryAfterMs > options.retry.maxRetryAfterMs) throw error;
    const delayMs = retryDelayMs(options.retry, this.#failures, runtime.random(), retryAfterMs);
    // A wait that ends after the deadline would only replace this error by a timeout.
    if (delayMs >= this.#deadline.remainingMs) throw error;
    await abortableDelay(delayMs, runtime, this.#deadline.signal);
    if (this.#deadline.ended) throw endedError(this.#facts(), this.#deadline.ended, false);
  }

  /** Reports that the service accepted the token, unless a gateway may have sent the response. */
  #acceptToken(status: number, token: string): void {
    const inconclusive =
      status >= 500 || [403, 408, 429].includes(status) || Math.floor(status / 100) === 3;
    if (!inconclusive) this.#parts.token.accept(token);
  }

  #response(response: HttpResponse, token: string): ApiResponse {
    const { status, headers } = response;
    const body = parseBody(response.body, headers['content-type']);
    if (this.#request.expect === 'object' && !isObject(body)) {
      throw invalidBodyError(this.#responseFacts(response, token));
    }
    return {
      status,
      headers: shownHeaders(headers, token),
      body,
      requestId: requestIdOf(headers, token),
    };
  }

  #facts(): CallFacts {
    const { method, pathTemplate, safe } = this.#request;
    return {
      company: this.#company.id,
      method,
      path: pathTemplate,
      attempts: this.#attempts,
      safe,
    };
  }

  #responseFacts(response: HttpResponse, token: string): CallFacts & { status: number } {
    const { status, headers } = response;
    return {
      ...this.#facts(),
      status,
      requestId: requestIdOf(headers, token),
      retryAfterMs: parseRetryAfterMs(headers['retry-after'], this.#parts.runtime.now()),
      body: parseBody(response.body, headers['content-type']),
    };
  }
}

/** Whether the policy retries a response with this status. */
function isRetryableStatus(policy: RetryPolicy, status: number): boolean {
  return policy.statuses.some((retried) =>
    retried === '5xx' ? status >= 500 && status <= 599 : retried === status,
  );
}

/**
 * Returns the wait before the next attempt, in milliseconds: an exponential backoff with jitter, or the `Retry-After`
 * of the response if that is longer. `maxRetryAfterMs` limits the `Retry-After`.
 *
 * @param failures number of failed attempts, from 1
 * @param random from 0 to 1
 */
function retryDelayMs(
  policy: RetryPolicy,
  failures: number,
  random: number,
  retryAfterMs: number | undefined,
): number {
  const bounds = { firstMs: policy.baseDelayMs, maxMs: policy.maxDelayMs };
  const requestedMs = Math.min(retryAfterMs ?? 0, policy.maxRetryAfterMs);
  return Math.max(backoffMs(bounds, failures, random), requestedMs);
}

function isObject(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !Array.isArray(body);
}
