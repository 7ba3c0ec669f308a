import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { COMPANIES, DEFAULT_COMPANY } from '../companies/company.js';
import type { Companies } from '../companies/company.js';
import { PAYMENTS_RUNTIME, type PaymentsRuntime } from '../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';
import { PAYMENTS_API_OPTIONS, type ResolvedApiOptions } from './api-options.js';
import type { TokenCheck } from './access-token.js';
import { pathSegment } from './call-request.js';
import { HttpApiClient } from './http-api-client.js';
import type {
  ApiClient,
  ApiMethod,
  ApiResponse,
  CallOptions,
  PaymentsApi,
  PaymentTransaction,
  RequestOptions,
} from './payments-api.js';

const TRANSACTION = '/v1/transactions/{id}';
const TEST_WEBHOOK = '/v1/webhooks/test';

export class CompanyApi implements PaymentsApi {
  readonly #client: ApiClient;

  constructor(
    client: ApiClient,
    readonly company: string,
  ) {
    if (typeof company !== 'string' || company === '') {
      throw new TypeError('forCompany() needs the id of a company: a string that is not empty');
    }
    this.#client = client;
  }

  /** A getter, so that `JSON.stringify` and `util.inspect` do not show the client. */
  protected get client(): ApiClient {
    return this.#client;
  }

  async getTransaction<T extends object = PaymentTransaction>(
    id: string,
    options: CallOptions = {},
  ): Promise<T> {
    const path = TRANSACTION.replace('{id}', () => pathSegment('transaction id', id));
    const response = await this.#client.call<T>(this.company, {
      method: 'GET',
      path,
      options: { ...options, pathTemplate: TRANSACTION },
      expect: 'object',
    });
    return response.body;
  }

  async sendTestWebhook<T = unknown>(options: CallOptions = {}): Promise<T> {
    return (await this.request<T>('POST', TEST_WEBHOOK, options)).body;
  }

  /**
   * Requests a token to check the credentials, and returns how long it is valid and how long the request took, or why
   * there is no token. Calls do not use this token.
   *
   * @internal `PaymentsSetup` calls this method.
   * @throws PaymentsError `company_unknown`
   */
  async checkToken(company: string): Promise<TokenCheck> {
    return this.#client.checkToken(company);
  }

  async get<T = unknown>(path: string, options: Omit<RequestOptions, 'body'> = {}): Promise<T> {
    return (await this.request<T>('GET', path, options)).body;
  }

  async post<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('POST', path, options)).body;
  }

  async put<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('PUT', path, options)).body;
  }

  async patch<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('PATCH', path, options)).body;
  }

  async delete<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('DELETE', path, options)).body;
  }

  async request<T = unknown>(
    method: ApiMethod,
    path: string,
    options: RequestOptions = {},
  ): Promise<ApiResponse<T>> {
    return this.#client.call<T>(this.company, { method, path, options, expect: 'anything' });
  }
}

/**
 * Calls the payments service for the application's company: the company `default`, or the only one configured.
 * `forCompany` returns the same API for another company. {@link PaymentsApi} describes what all methods have in common.
 *
 * @example
 * ```ts
 * constructor(private readonly payments: PaymentsApiService) {}
 *
 * const transaction = await this.payments.getTransaction(id);
 * const other = await this.payments.forCompany('acme').getTransaction(id);
 * ```
 */
@Injectable()
export class PaymentsApiService extends CompanyApi implements OnApplicationShutdown {
  constructor(
    @Inject(COMPANIES) companies: Companies,
    @Inject(PAYMENTS_API_OPTIONS) options: ResolvedApiOptions,
    @Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime,
    observers: Observers = NO_OBSERVERS,
  ) {
    super(new HttpApiClient(companies, options, runtime, observers), DEFAULT_COMPANY);
  }

  /**
   * Returns the same API for another company. The company is looked up at each call: if it does not exist, the call
   * rejects with `company_unknown`.
   *
   * @throws TypeError if `id` is empty or not a string
   */
  forCompany(id: string): PaymentsApi {
    return new CompanyApi(this.client, id);
  }

  /**
   * Aborts the calls under way and closes the connections. Nest calls this method in the last stage of shutdown, so
   * handlers that are still running can call the service until then.
   */
  async onApplicationShutdown(): Promise<void> {
    await this.client.close();
  }
}
