import type { Companies, ResolvedCompany } from '../companies/company.js';
import { ModuleLogger } from '../errors/module-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import { backoffMs } from '../runtime/backoff.js';
import { abortable, abortableDelay, Deadline } from '../runtime/deadline.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { Observers } from '../telemetry/observers.js';
import { AccessToken, requestToken, TokenCache, type TokenCheck } from './access-token.js';
import {
  authenticationError,
  endedError,
  failureError,
  invalidBodyError,
  PaymentsApiError,
  redirectError,
  statusError,
  type CallFacts,
} from './api-error.js';
import type { ResolvedApiOptions, RetryPolicy } from './api-options.js';
import { prepareCall, type CallRequest } from './call-request.js';
import {
  callUrl,
  isSuccess,
  parseBody,
  parseRetryAfterMs,
  requestIdOf,
  shownHeaders,
  type HttpFailure,
  type HttpResponse,
} from './http-exchange.js';
import type { ApiClient, ApiResponse, CallSpec } from './payments-api.js';
import { Transport } from './transport.js';

const MAX_TOKENS = 10_000;

export class HttpApiClient implements ApiClient {
  readonly #logger = new ModuleLogger('PaymentsApi');
  readonly #calls: Transport;
  readonly #tokenRequests: Transport;
  readonly #tokens: TokenCache;
  readonly #underWay = new Set<Deadline>();
  #closed = false;

  constructor(
    private readonly companies: Pick<Companies, 'find'>,
    private readonly options: ResolvedApiOptions,
    private readonly runtime: PaymentsRuntime,
    private readonly observers: Observers,
  ) {
    this.#calls = new Transport(options, 'calls');
    this.#tokenRequests = new Transport(options, 'token');
    this.#tokens = new TokenCache(MAX_TOKENS, (company) => this.#token(company));
  }

  async call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>> {
    const { runtime, options } = this;
    const request = prepareCall(spec, options);
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    const deadline = new Deadline(runtime, request.deadlineMs, request.signal);
    this.#underWay.add(deadline);
    try {
      const company = await this.#company(companyId, request, deadline);
      const token = this.#tokens.get(company);
      const call = new ApiCall(request, company, deadline, token, this.#calls, options, runtime);
      return (await this.#observe(call, company, request)) as ApiResponse<T>;
    } finally {
      deadline.release();
      this.#underWay.delete(deadline);
    }
  }

  async checkToken(companyId: string): Promise<TokenCheck> {
    const company = await this.companies.find(companyId);
    if (company === undefined) throw companyUnknown(companyId);
    return this.#tokens.get(company).check();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const deadline of this.#underWay) deadline.end('closed');
    this.#tokens.close();
    await Promise.all([this.#calls.close(), this.#tokenRequests.close()]);
  }

  #observe(call: ApiCall, company: ResolvedCompany, request: CallRequest): Promise<ApiResponse> {
    const { observers } = this;
    const { method, pathTemplate: path } = request;
    const info = { company: company.id, method, path };
    return observers.observe(
      { kind: 'call', baseUrl: company.baseUrl, ...info },
      () => call.run(),
      ({ value, thrown, error, errorCode, durationMs }) => {
        const failed = thrown instanceof PaymentsApiError ? thrown.status : undefined;
        const status = value?.status ?? failed ?? null;
        const { attempts } = call;
        const ended = { ...info, status, errorCode, attempts, durationMs };
        observers.facts.apiCallEnded(ended);
        if (observers.active) observers.notify('apiCallEnded', ended);
        const outcome = error === null ? 'succeeded' : 'failed';
        return { outcome, error, errorCode, status, attempts };
      },
    );
  }

  /** Looks up the company within the deadline of the call, because the lookup may need a database. */
  async #company(id: string, request: CallRequest, deadline: Deadline): Promise<ResolvedCompany> {
    const found = this.companies.find(id);
    const company = await abortable(found, deadline.signal, () =>
      endedError(callFacts(request, id, 0), deadline.ended!, false),
    );
    if (company) return company;
    throw companyUnknown(id);
  }

  #token(company: ResolvedCompany): AccessToken {
    const parts = { runtime: this.runtime, logger: this.#logger };
    const send = this.#tokenRequests.send.bind(this.#tokenRequests);
    return new AccessToken({
      ...parts,
      company: company.id,
      requestToken: (signal) => requestToken(company, send, parts, signal),
      timeoutMs: this.options.tokenTimeoutMs,
      onEnded: (info) => {
        this.observers.facts.tokenFetched(info);
        if (this.observers.active) this.observers.notify('tokenFetched', info);
      },
    });
  }
}

function companyUnknown(id: string): PaymentsError {
  return new PaymentsError(
    'company_unknown',
    `No company '${id}' is configured: check the id given to forCompany(), or the directory`,
  );
}

/** One call with all its attempts, from the token to the response. */
class ApiCall {
  attempts = 0;
  readonly #url: string;
  #failures = 0;
  /** The token that the service rejected with 401 during this call. */
  #rejectedToken: string | undefined;

  constructor(
    private readonly request: CallRequest,
    private readonly company: ResolvedCompany,
    private readonly deadline: Deadline,
    private readonly token: AccessToken,
    private readonly transport: Transport,
    private readonly options: ResolvedApiOptions,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#url = callUrl(company.baseUrl, request.pathAndQuery);
  }

  async run(): Promise<ApiResponse> {
    for (;;) {
      const token = await this.#currentToken();
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

  async #currentToken(): Promise<string> {
    try {
      if (this.deadline.ended) throw endedError(this.#facts(), this.deadline.ended, false);
      return await this.token.get(this.deadline.signal);
    } catch (error) {
      throw this.deadline.ended ? endedError(this.#facts(), this.deadline.ended, false) : error;
    }
  }

  async #attempt(
    token: string,
  ): Promise<{ result: HttpResponse | HttpFailure; timedOut: boolean }> {
    const { method, headers, body } = this.request;
    this.attempts += 1;
    const deadline = new Deadline(
      this.runtime,
      this.options.attemptTimeoutMs,
      this.deadline.signal,
    );
    const result = await this.transport.send({
      method,
      url: this.#url,
      headers: { ...headers, [this.options.tokenHeader]: `Bearer ${token}` },
      body,
      signal: deadline.signal,
      maxBytes: this.options.maxResponseBytes,
    });
    deadline.release();
    return { result, timedOut: deadline.ended === 'timeout' };
  }

  async #afterFailure(failure: HttpFailure, timedOut: boolean): Promise<void> {
    if (this.deadline.ended) throw endedError(this.#facts(), this.deadline.ended, !failure.unsent);
    const error = failureError(this.#facts(), failure, timedOut);
    const transient = timedOut || failure.reason === 'connection_failed';
    if (!transient || !(this.request.safe || failure.unsent)) throw error;
    await this.#retry(error);
  }

  async #afterRejection(response: HttpResponse, token: string): Promise<void> {
    const error = authenticationError(
      this.#responseFacts(response, token),
      new URL(this.company.baseUrl).host,
    );
    this.token.invalidate(token);
    if (this.#rejectedToken !== undefined) throw error;
    this.#rejectedToken = token;
    if ((await this.#currentToken()) === token) throw error;
  }

  async #afterStatus(response: HttpResponse, token: string): Promise<void> {
    const facts = this.#responseFacts(response, token);
    const { status } = response;
    if (status >= 300 && status <= 399) {
      throw redirectError(facts, response.headers['location'], this.#url);
    }
    const error = statusError(facts);
    const retryable = isRetryableStatus(this.options.retry, status);
    if (!this.request.safe || !retryable) throw error;
    await this.#retry(error);
  }

  /** Waits until the next attempt is due. Throws `error` if there is no further attempt. */
  async #retry(error: PaymentsApiError): Promise<void> {
    const { runtime } = this;
    const { attempts, baseDelayMs, maxDelayMs, maxRetryAfterMs } = this.options.retry;
    this.#failures += 1;
    if (this.#failures >= attempts) throw error;
    const { retryAfterMs = 0 } = error;
    if (this.request.obeyRetryAfter && retryAfterMs > maxRetryAfterMs) throw error;
    const bounds = { firstMs: baseDelayMs, maxMs: maxDelayMs };
    const backoff = backoffMs(bounds, this.#failures, runtime.random());
    const delayMs = Math.max(backoff, Math.min(retryAfterMs, maxRetryAfterMs));
    // If the wait ended after the deadline, the caller would get a timeout instead of this error.
    if (delayMs >= this.deadline.remainingMs) throw error;
    await abortableDelay(delayMs, runtime, this.deadline.signal);
    if (this.deadline.ended) throw endedError(this.#facts(), this.deadline.ended, false);
  }

  /** Reports that the service accepted the token, unless the response may come from a gateway. */
  #acceptToken(status: number, token: string): void {
    const inconclusive =
      status >= 500 || [403, 408, 429].includes(status) || Math.floor(status / 100) === 3;
    if (!inconclusive) this.token.accept(token);
  }

  #response(response: HttpResponse, token: string): ApiResponse {
    const { status, headers } = response;
    const body = parseBody(response.body, headers['content-type']);
    const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
    if (this.request.expect === 'object' && !isObject) {
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
    return callFacts(this.request, this.company.id, this.attempts);
  }

  #responseFacts(response: HttpResponse, token: string): CallFacts & { status: number } {
    const { status, headers } = response;
    return {
      ...this.#facts(),
      status,
      requestId: requestIdOf(headers, token),
      retryAfterMs: parseRetryAfterMs(headers['retry-after'], this.runtime.now()),
      body: parseBody(response.body, headers['content-type']),
    };
  }
}

function callFacts(
  { method, pathTemplate: path, safe }: CallRequest,
  company: string,
  attempts: number,
): CallFacts {
  return { company, method, path, attempts, safe };
}

function isRetryableStatus(policy: RetryPolicy, status: number): boolean {
  return policy.statuses.some((retried) =>
    retried === '5xx' ? status >= 500 && status <= 599 : retried === status,
  );
}
