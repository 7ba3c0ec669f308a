import type { ResolvedCompany } from '../companies/company.js';
import { PaymentsError } from '../payments.errors.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { abortable } from './abortable.promise.js';
import { AccessToken } from './access-token.js';
import type { ApiLogger } from './api.logger.js';
import type { ResolvedApiOptions } from './api.options.js';
import { ApiCall } from './api.call.js';
import { endedError } from './call.errors.js';
import { prepareCall, type CallRequest, type CallSpec } from './call.request.js';
import { CallScope } from './call.scope.js';
import type { Caller } from './caller.js';
import type { CompanySource } from './company.source.js';
import { Transport } from './http/transport.js';
import type { ApiResponse } from './payments.api.js';
import { guardedObserver, type RequestObserver } from './request.observer.js';
import { TokenDirectory } from './token.directory.js';
import { requestToken } from './token.request.js';

/** What an {@link ApiCaller} is made of. */
export interface ApiCallerParts {
  companies: CompanySource;
  options: ResolvedApiOptions;
  runtime: PaymentsRuntime;
  logger: ApiLogger;
}

/** Makes the calls of every company: holds their tokens, the connections, and what is under way. */
export class ApiCaller implements Caller {
  readonly #parts: ApiCallerParts;
  readonly #calls: Transport;
  readonly #tokenRequests: Transport;
  readonly #tokens: TokenDirectory;
  readonly #observe: RequestObserver;
  readonly #underWay = new Set<CallScope>();
  #closed = false;

  constructor(parts: ApiCallerParts) {
    const { options, logger } = parts;
    this.#parts = parts;
    this.#observe = guardedObserver(options.onRequest, logger);
    this.#calls = new Transport(options, 'calls');
    this.#tokenRequests = new Transport(options, 'token');
    this.#tokens = new TokenDirectory(options.maxCompanies, (company) => this.#token(company));
  }

  async call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>> {
    const { runtime, options } = this.#parts;
    const request = prepareCall(spec, options);
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    const scope = new CallScope(runtime, request.deadlineMs, request.signal);
    this.#underWay.add(scope);
    try {
      const company = await this.#company(companyId, request, scope);
      await this.#calls.open();
      const call = new ApiCall(request, company, scope, {
        token: this.#tokens.of(company),
        send: (sent) => this.#calls.send(sent),
        observe: this.#observe,
        options,
        runtime,
      });
      return (await call.run()) as ApiResponse<T>;
    } finally {
      scope.release();
      this.#underWay.delete(scope);
    }
  }

  /** Ends what is under way, refuses further calls, closes connections: resolves when they are closed. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const scope of this.#underWay) scope.end('closed');
    this.#tokens.close();
    await Promise.all([this.#calls.close(), this.#tokenRequests.close()]);
  }

  /** Looked up under the call's deadline too: a directory asks a database, and that may hang. */
  async #company(id: string, request: CallRequest, scope: CallScope): Promise<ResolvedCompany> {
    const found = Promise.resolve(this.#parts.companies.find(id));
    const company = await abortable(found, scope.signal).catch((error: unknown) => {
      const { method, label, safe } = request;
      if (!scope.ended) throw error;
      throw endedError({ company: id, method, path: label, attempts: 0, safe }, scope.ended, false);
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
