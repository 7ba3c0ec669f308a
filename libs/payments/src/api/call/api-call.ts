import type { ResolvedCompany } from '../../companies/company.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { AccessToken } from '../token/access-token.js';
import type { ResolvedApiOptions } from '../api-options.js';
import { callUrl } from '../http/request-url.js';
import type { PaymentsApiError } from './api-error.js';
import {
  authenticationError,
  endedError,
  failureError,
  invalidBodyError,
  redirectError,
  statusError,
  type CallFacts,
} from './api-error.js';
import type { CallRequest } from './call-request.js';
import { Deadline } from '../../runtime/deadline.js';
import type { HttpAnswer, HttpFailure, HttpRequest } from '../http/exchange.js';
import { parseBody } from '../http/answer-body.js';
import { abortableDelay } from '../../runtime/abortable.js';
import type { ApiResponse } from '../payments-api.js';
import type { RequestObserver } from '../request-observer.js';
import { requestIdOf, shownHeaders } from '../http/response-headers.js';
import { parseRetryAfterMs } from '../http/response-headers.js';
import { isRetryableStatus, retryDelayMs } from './retry-policy.js';

/** What an {@link ApiCall} needs. */
export interface ApiCallParts {
  token: AccessToken;
  send: (request: HttpRequest) => Promise<HttpAnswer | HttpFailure>;
  observe: RequestObserver;
  options: ResolvedApiOptions;
  runtime: PaymentsRuntime;
}

/** One call, from its token to its answer, with all its attempts. */
export class ApiCall {
  readonly #request: CallRequest;
  readonly #company: ResolvedCompany;
  readonly #deadline: Deadline;
  readonly #parts: ApiCallParts;
  readonly #url: string;
  #attempts = 0;
  #failures = 0;
  /** The token of this call that was answered 401. */
  #rejected: string | undefined;

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
        if (result.status >= 200 && result.status <= 299) return this.#response(result, token);
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

  async #attempt(token: string): Promise<{ result: HttpAnswer | HttpFailure; timedOut: boolean }> {
    const { runtime, options, send, observe } = this.#parts;
    const { method, headers, body, label } = this.#request;
    this.#attempts += 1;
    const began = runtime.monotonic();
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
    const timedOut = deadline.ended === 'timeout';
    observe({
      company: this.#company.id,
      method,
      path: label,
      status: result.status,
      failure: result.kind === 'failure' ? (deadline.ended ?? result.reason) : undefined,
      attempt: this.#attempts,
      elapsedMs: runtime.monotonic() - began,
    });
    return { result, timedOut };
  }

  /** Exactly one of the two headers. `false` also removes a header that axios would add. */
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

  async #afterRejection(answer: HttpAnswer, token: string): Promise<void> {
    const error = authenticationError(
      this.#answerFacts(answer, token),
      new URL(this.#company.baseUrl).host,
    );
    this.#parts.token.invalidate(token);
    if (this.#rejected !== undefined) throw error;
    this.#rejected = token;
    if ((await this.#token()) === token) throw error;
  }

  async #afterStatus(answer: HttpAnswer, token: string): Promise<void> {
    const facts = this.#answerFacts(answer, token);
    const { status } = answer;
    if (status >= 300 && status <= 399) {
      throw redirectError(facts, answer.headers['location'], this.#url);
    }
    const error = statusError(facts);
    const retryable = isRetryableStatus(this.#parts.options.retry, status);
    if (!this.#request.safe || !retryable) throw error;
    await this.#retry(error);
  }

  /** Waits until the next attempt is due. Throws the error if there is no further attempt. */
  async #retry(error: PaymentsApiError): Promise<void> {
    const { runtime, options } = this.#parts;
    this.#failures += 1;
    if (this.#failures >= options.retry.attempts) throw error;
    const delayMs = retryDelayMs(
      options.retry,
      this.#failures,
      runtime.random(),
      error.retryAfterMs,
    );
    // A wait beyond the deadline would only replace this error by a timeout.
    if (delayMs >= this.#deadline.remainingMs) throw error;
    await abortableDelay(delayMs, runtime, this.#deadline.signal);
    if (this.#deadline.ended) throw endedError(this.#facts(), this.#deadline.ended, false);
  }

  /** Most answers show that the service accepted the token. Those that a gateway may have given do not. */
  #acceptToken(status: number, token: string): void {
    const inconclusive =
      status >= 500 || [403, 408, 429].includes(status) || Math.floor(status / 100) === 3;
    if (!inconclusive) this.#parts.token.accept(token);
  }

  #response(answer: HttpAnswer, token: string): ApiResponse {
    const { status, headers } = answer;
    const body = parseBody(answer.body, headers['content-type']);
    if (this.#request.expect === 'object' && !isObject(body)) {
      throw invalidBodyError(this.#answerFacts(answer, token));
    }
    return {
      status,
      headers: shownHeaders(headers, token),
      body,
      requestId: requestIdOf(headers, this.#parts.options.requestIdHeader, token),
    };
  }

  #facts(): CallFacts {
    const { method, label, safe } = this.#request;
    return { company: this.#company.id, method, path: label, attempts: this.#attempts, safe };
  }

  #answerFacts(answer: HttpAnswer, token: string): CallFacts & { status: number } {
    const { status, headers } = answer;
    return {
      ...this.#facts(),
      status,
      requestId: requestIdOf(headers, this.#parts.options.requestIdHeader, token),
      retryAfterMs: parseRetryAfterMs(headers['retry-after'], this.#parts.runtime.now()),
      body: parseBody(answer.body, headers['content-type']),
    };
  }
}

function isObject(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !Array.isArray(body);
}
