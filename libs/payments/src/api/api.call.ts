import type { ResolvedCompany } from '../companies/company.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type { AccessToken } from './access-token.js';
import type { PaymentsApiError } from './api.errors.js';
import type { ResolvedApiOptions } from './api.options.js';
import { callUrl } from './api.path.js';
import {
  authenticationError,
  endedError,
  failureError,
  invalidBodyError,
  redirectError,
  statusError,
  type CallFacts,
} from './call.errors.js';
import type { CallRequest } from './call.request.js';
import { CallScope } from './call.scope.js';
import type { HttpAnswer, HttpFailure, HttpRequest } from './http/exchange.js';
import { parseBody } from './http/body.js';
import { pause } from './pause.js';
import type { ApiResponse } from './payments.api.js';
import type { RequestObserver } from './request.observer.js';
import { requestIdOf, shownHeaders } from './response.headers.js';
import { parseRetryAfterMs } from './retry-after.header.js';
import { isRetryableStatus, retryDelayMs } from './retry.policy.js';

/** What an {@link ApiCall} works with. */
export interface ApiCallParts {
  token: AccessToken;
  send: (request: HttpRequest) => Promise<HttpAnswer | HttpFailure>;
  observe: RequestObserver;
  options: ResolvedApiOptions;
  runtime: PaymentsRuntime;
}

/** One call, from its token to its answer, over as many tries as it may have. */
export class ApiCall {
  readonly #request: CallRequest;
  readonly #company: ResolvedCompany;
  readonly #scope: CallScope;
  readonly #parts: ApiCallParts;
  readonly #url: string;
  #attempts = 0;
  #failures = 0;
  /** The token of this call that was answered 401. */
  #rejected: string | undefined;

  constructor(
    request: CallRequest,
    company: ResolvedCompany,
    scope: CallScope,
    parts: ApiCallParts,
  ) {
    this.#request = request;
    this.#company = company;
    this.#scope = scope;
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
        this.#notice(result.status, token);
        if (result.status >= 200 && result.status <= 299) return this.#response(result, token);
        await this.#afterStatus(result, token);
      }
    }
  }

  async #token(): Promise<string> {
    try {
      if (this.#scope.ended) throw endedError(this.#facts(), this.#scope.ended, false);
      return await this.#parts.token.get(this.#scope.signal);
    } catch (error) {
      throw this.#scope.ended ? endedError(this.#facts(), this.#scope.ended, false) : error;
    }
  }

  async #attempt(token: string): Promise<{ result: HttpAnswer | HttpFailure; timedOut: boolean }> {
    const { runtime, options, send, observe } = this.#parts;
    const { method, headers, body, label } = this.#request;
    this.#attempts += 1;
    const began = runtime.monotonic();
    const scope = new CallScope(runtime, options.attemptTimeoutMs, this.#scope.signal);
    const result = await send({
      method,
      url: this.#url,
      headers: { ...headers, ...this.#tokenHeaders(token) },
      body,
      signal: scope.signal,
      maxBytes: options.maxResponseBytes,
    });
    scope.release();
    const timedOut = scope.ended === 'timeout';
    observe({
      company: this.#company.id,
      method,
      path: label,
      status: result.status,
      failure: result.kind === 'failure' ? (scope.ended ?? result.reason) : undefined,
      attempt: this.#attempts,
      elapsedMs: runtime.monotonic() - began,
    });
    return { result, timedOut };
  }

  /** One of the two headers, never both: `false` also removes one that axios would add. */
  #tokenHeaders(token: string): Record<string, string | false> {
    const value = `Bearer ${token}`;
    return this.#parts.options.tokenHeader === 'authorization'
      ? { authorization: value, 'x-auth-token': false }
      : { authorization: false, 'x-auth-token': value };
  }

  async #afterFailure(failure: HttpFailure, timedOut: boolean): Promise<void> {
    if (this.#scope.ended) throw endedError(this.#facts(), this.#scope.ended, !failure.unsent);
    const error = failureError(this.#facts(), failure, timedOut);
    const passing = timedOut || failure.reason === 'connection_failed';
    if (!passing || !(this.#request.safe || failure.unsent)) throw error;
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

  /** Waits for the next try, or throws what ended the last one. */
  async #retry(error: PaymentsApiError): Promise<void> {
    const { runtime, options } = this.#parts;
    this.#failures += 1;
    if (this.#failures >= options.retry.attempts) throw error;
    const delay = retryDelayMs(options.retry, this.#failures, runtime.random(), error.retryAfterMs);
    // A wait that outlasts the deadline would only make the same error later, and hide it behind a timeout.
    if (delay >= this.#scope.remainingMs) throw error;
    await pause(runtime, delay, this.#scope.signal);
    if (this.#scope.ended) throw endedError(this.#facts(), this.#scope.ended, false);
  }

  /** An answer that isn't about the token shows that the service took it. A gateway's 5xx shows nothing. */
  #notice(status: number, token: string): void {
    const silent =
      status >= 500 || [403, 408, 429].includes(status) || Math.floor(status / 100) === 3;
    if (!silent) this.#parts.token.accept(token);
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
