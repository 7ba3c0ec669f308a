import type { ResolvedCompany } from '../companies/company.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { abortable } from '../runtime/abortable.js';
import { AccessToken } from './token/access-token.js';
import type { ApiLogger } from './request-observer.js';
import type { ResolvedApiOptions } from './api-options.js';
import { ApiCall } from './call/api-call.js';
import { endedError } from './call/api-error.js';
import { prepareCall, type CallRequest, type CallSpec } from './call/call-request.js';
import { Deadline } from '../runtime/deadline.js';
import type { ApiClient } from './company-api.js';
import type { Companies } from '../companies/companies.js';
import { Transport } from './http/transport.js';
import type { ApiResponse } from './payments-api.js';
import { guardedObserver, type RequestObserver } from './request-observer.js';
import { TokenCache } from './token/token-cache.js';
import { requestToken } from './token/token-request.js';

/** What an {@link HttpApiClient} needs. */
export interface HttpApiClientParts {
  companies: Pick<Companies, 'find'>;
  options: ResolvedApiOptions;
  runtime: PaymentsRuntime;
  logger: ApiLogger;
}

/** Calls the payments service for every company. It has their tokens, the connections and the calls under way. */
export class HttpApiClient implements ApiClient {
  readonly #parts: HttpApiClientParts;
  readonly #calls: Transport;
  readonly #tokenRequests: Transport;
  readonly #tokens: TokenCache;
  readonly #observe: RequestObserver;
  readonly #underWay = new Set<Deadline>();
  #closed = false;

  constructor(parts: HttpApiClientParts) {
    const { options, logger } = parts;
    this.#parts = parts;
    this.#observe = guardedObserver(options.onRequest, logger);
    this.#calls = new Transport(options, 'calls');
    this.#tokenRequests = new Transport(options, 'token');
    this.#tokens = new TokenCache(options.maxCompanies, (company) => this.#token(company));
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
        observe: this.#observe,
        options,
        runtime,
      });
      return (await call.run()) as ApiResponse<T>;
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

  /** The deadline of the call includes this lookup, because it may need a database. */
  async #company(id: string, request: CallRequest, deadline: Deadline): Promise<ResolvedCompany> {
    const found = this.#parts.companies.find(id);
    const company = await abortable(found, deadline.signal).catch((error: unknown) => {
      const { method, label, safe } = request;
      if (!deadline.ended) throw error;
      const facts = { company: id, method, path: label, attempts: 0, safe };
      throw endedError(facts, deadline.ended, false);
    });
    if (company) return company;
    throw new PaymentsError(
      'company_unknown',
      `No company '${id}' is configured: check the id given to forCompany(), or the directory`,
    );
  }

  #token(company: ResolvedCompany): AccessToken {
    const { runtime, logger, options } = this.#parts;
    const parts = {
      send: this.#tokenRequests.send.bind(this.#tokenRequests),
      runtime,
      logger,
      observe: this.#observe,
      userAgent: options.userAgent,
    };
    return new AccessToken({
      company: company.id,
      runtime,
      logger,
      requestToken: (signal) => requestToken(company, parts, signal),
      timeoutMs: options.tokenTimeoutMs,
    });
  }
}
