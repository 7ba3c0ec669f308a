import { createHmac, randomBytes } from 'node:crypto';
import type { Companies, ResolvedCompany } from '../companies/company.js';
import { ModuleLogger } from '../errors/module-logger.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { ThrottledLog } from '../errors/throttled-log.js';
import { abortable, Deadline } from '../runtime/deadline.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { NO_OBSERVERS } from '../telemetry/observers.js';
import type { Observers } from '../telemetry/observers.js';
import type { ResolvedApiOptions } from './api-options.js';
import { ApiCall } from './call/api-call.js';
import { endedError, PaymentsApiError } from './call/api-error.js';
import { prepareCall, type CallRequest } from './call/call-request.js';
import { Transport } from './http/transport.js';
import type { ApiClient, ApiResponse, CallSpec } from './payments-api.js';
import { AccessToken } from './token/access-token.js';
import { requestToken } from './token/token-request.js';

/** Dependencies of an {@link HttpApiClient}. */
export interface HttpApiClientParts {
  companies: Pick<Companies, 'find'>;
  options: ResolvedApiOptions;
  runtime: PaymentsRuntime;
  observers?: Observers;
}

/** Calls the payments service for every company. It manages the tokens, the connections and the calls under way. */
export class HttpApiClient implements ApiClient {
  readonly #logger = new ModuleLogger('PaymentsApi');
  readonly #parts: HttpApiClientParts;
  readonly #calls: Transport;
  readonly #tokenRequests: Transport;
  readonly #tokens: TokenCache;
  readonly #observers: Observers;
  readonly #underWay = new Set<Deadline>();
  #closed = false;

  constructor(parts: HttpApiClientParts) {
    const { options, runtime } = parts;
    const log = new ThrottledLog(this.#logger, runtime);
    const onRejection = (reason: unknown): void =>
      log.warn(
        'api.http',
        () =>
          'An interceptor of "api.http" did not await a promise, which rejected. Calls are not affected. ' +
          describeError(reason),
      );
    this.#parts = parts;
    this.#observers = parts.observers ?? NO_OBSERVERS;
    this.#calls = new Transport(options, 'calls', onRejection);
    this.#tokenRequests = new Transport(options, 'token', onRejection);
    this.#tokens = new TokenCache(MAX_TOKENS, (company) => this.#token(company));
  }

  async call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>> {
    const { runtime, options } = this.#parts;
    const request = prepareCall(spec, options);
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    const deadline = new Deadline(runtime, request.deadlineMs, request.signal);
    this.#underWay.add(deadline);
    try {
      const company = await this.#company(companyId, request, deadline);
      await this.#calls.open();
      const call = new ApiCall(request, company, deadline, {
        token: this.#tokens.get(company),
        send: (sent) => this.#calls.send(sent),
        options,
        runtime,
      });
      return (await this.#observe(call, company, request)) as ApiResponse<T>;
    } finally {
      deadline.release();
      this.#underWay.delete(deadline);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const deadline of this.#underWay) deadline.end('closed');
    this.#tokens.close();
    await Promise.all([this.#calls.close(), this.#tokenRequests.close()]);
  }

  /** Makes the call within a span, and reports its result to the observers. */
  #observe(call: ApiCall, company: ResolvedCompany, request: CallRequest): Promise<ApiResponse> {
    const observers = this.#observers;
    const { method, pathTemplate: path } = request;
    const info = { company: company.id, method, path };
    return observers.observe(
      { kind: 'call', baseUrl: company.baseUrl, ...info },
      () => call.run(),
      ({ value, thrown, error, errorCode, durationMs }) => {
        const failed = thrown instanceof PaymentsApiError ? thrown.status : undefined;
        const status = value?.status ?? failed ?? null;
        const { attempts } = call;
        observers.notify('apiCallEnded', { ...info, status, errorCode, attempts, durationMs });
        const outcome = error === null ? 'succeeded' : 'failed';
        return { outcome, error, errorCode, status, attempts };
      },
    );
  }

  /** Looks up the company within the deadline of the call, because the lookup may need a database. */
  async #company(id: string, request: CallRequest, deadline: Deadline): Promise<ResolvedCompany> {
    const { method, pathTemplate: path, safe } = request;
    const facts = { company: id, method, path, attempts: 0, safe };
    const found = this.#parts.companies.find(id);
    const company = await abortable(found, deadline.signal, () =>
      endedError(facts, deadline.ended!, false),
    );
    if (company) return company;
    throw new PaymentsError(
      'company_unknown',
      `No company '${id}' is configured: check the id given to forCompany(), or the directory`,
    );
  }

  #token(company: ResolvedCompany): AccessToken {
    const { runtime, options } = this.#parts;
    const logger = this.#logger;
    const send = this.#tokenRequests.send.bind(this.#tokenRequests);
    return new AccessToken({
      company: company.id,
      runtime,
      logger,
      requestToken: (signal) => requestToken(company, { send, runtime, logger }, signal),
      timeoutMs: options.tokenTimeoutMs,
      onEnded: (info) => this.#observers.active && this.#observers.notify('tokenFetched', info),
    });
  }
}

/** The most companies whose tokens are kept. */
const MAX_TOKENS = 10_000;

/**
 * Keeps one access token per company id, base URL and credentials. So two companies, two hosts or two secrets never
 * share a token, and a company whose secret was changed gets a new token.
 *
 * If the cache is full, it drops the least recently used token. It does not close that token, because calls may be
 * waiting for it.
 */
export class TokenCache {
  // A heap dump shows the keys of the map, so they contain only a digest of the credentials. The digest is keyed with a
  // random secret of this instance, because a short client secret could be guessed from a plain digest.
  readonly #digestKey = randomBytes(32);
  readonly #tokens = new Map<string, AccessToken>();
  /** The map key of each company object, so that not every call computes a digest. */
  readonly #keys = new WeakMap<ResolvedCompany, string>();
  readonly #capacity: number;
  readonly #create: (company: ResolvedCompany) => AccessToken;

  /**
   * @param capacity the most tokens kept
   * @param create creates the token of a company; it sends no request before its first use
   */
  constructor(capacity: number, create: (company: ResolvedCompany) => AccessToken) {
    this.#capacity = capacity;
    this.#create = create;
  }

  /** Returns the token of this company. */
  get(company: ResolvedCompany): AccessToken {
    const key = this.#keyOf(company);
    const token = this.#tokens.get(key) ?? this.#create(company);
    // A Map keeps the order of insertion, so the first key is the least recently used.
    this.#tokens.delete(key);
    this.#tokens.set(key, token);
    if (this.#tokens.size > this.#capacity) {
      const [oldest] = this.#tokens.keys();
      if (oldest !== undefined) this.#tokens.delete(oldest);
    }
    return token;
  }

  /** Closes every token. */
  close(): void {
    for (const token of this.#tokens.values()) token.close();
    this.#tokens.clear();
  }

  #keyOf(company: ResolvedCompany): string {
    const known = this.#keys.get(company);
    if (known !== undefined) return known;
    const { id, baseUrl, clientId, clientSecret } = company;
    const key = createHmac('sha256', this.#digestKey)
      .update(JSON.stringify([id, baseUrl, clientId, clientSecret]))
      .digest('base64');
    this.#keys.set(company, key);
    return key;
  }
}
