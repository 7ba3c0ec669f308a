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
  PaymentTransaction,
  RequestOptions,
} from './payments-api.js';

const TRANSACTION = '/v1/transactions/{id}';
const TEST_WEBHOOK = '/v1/webhooks/test';

/**
 * Calls the payments service for one company. Every method sends the company's access token, ends by the deadline of
 * the call, and rejects with
 *
 * - `TypeError` for an invalid argument, before a request is sent;
 * - {@link PaymentsTokenError} if there is no token;
 * - {@link PaymentsError} `company_unknown` if there is no such company;
 * - {@link PaymentsApiError} for everything else.
 *
 * The option `retry` decides when a GET is retried. Other methods are retried only if no byte can have reached the
 * service. If it is unknown whether the call had an effect, the error is `outcome_unknown`.
 *
 * `get`, `post`, `put`, `patch` and `delete` resolve to the response body: the parsed value if it is JSON, otherwise
 * its text, `undefined` if it is empty.
 */
export class PaymentsApi {
  readonly #client: ApiClient;

  constructor(
    client: ApiClient,
    /** Id of the company that the calls are made for. */
    readonly company: string,
  ) {
    if (typeof company !== 'string' || company === '') {
      throw new TypeError('forCompany() needs the id of a company: a string that is not empty');
    }
    this.#client = client;
  }

  /** This property is a getter, so that `JSON.stringify` and `util.inspect` do not show the client. */
  protected get client(): ApiClient {
    return this.#client;
  }

  /**
   * Returns a transaction in its authoritative current state (`GET /v1/transactions/{id}`). Rejects with
   * `response_invalid` if the response is not a JSON object.
   *
   * @example
   * ```ts
   * const transaction = await payments.getTransaction(event.data.transactionId);
   * ```
   */
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

  /**
   * Asks the service to send a `webhook.test` event to the webhook URL that the service has for the company (`POST
   * /v1/webhooks/test`). The response shows whether the service could send the event; the service does not document the
   * fields of this response.
   */
  async sendTestWebhook<T = unknown>(options: CallOptions = {}): Promise<T> {
    return (await this.request<T>('POST', TEST_WEBHOOK, options)).body;
  }

  /**
   * Requests a token to check the credentials. Calls do not use this token. Returns how long the token is valid and how
   * long the request took, or why there is no token.
   *
   * @internal `PaymentsSetup` calls this method.
   * @throws PaymentsError `company_unknown`
   */
  async checkToken(company: string): Promise<TokenCheck> {
    return this.#client.checkToken(company);
  }

  /** Sends `GET path`. */
  async get<T = unknown>(path: string, options: Omit<RequestOptions, 'body'> = {}): Promise<T> {
    return (await this.request<T>('GET', path, options)).body;
  }

  /** Sends `POST path`. */
  async post<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('POST', path, options)).body;
  }

  /** Sends `PUT path`. */
  async put<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('PUT', path, options)).body;
  }

  /** Sends `PATCH path`. */
  async patch<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('PATCH', path, options)).body;
  }

  /** Sends `DELETE path`. */
  async delete<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('DELETE', path, options)).body;
  }

  /**
   * Makes a call with any method and returns the complete response.
   *
   * @param path starts with `/` and is relative to the company's base URL. An absolute URL, `//host`, `..`, a
   *   backslash, a query, a fragment or characters that need percent-encoding cause a `TypeError`. Encode ids with
   *   `encodeURIComponent`.
   * @example
   * ```ts
   * const { body, requestId } = await payments.request('POST', '/v1/some-endpoint', { body: { amount: 100 } });
   * ```
   */
  async request<T = unknown>(
    method: ApiMethod,
    path: string,
    options: RequestOptions = {},
  ): Promise<ApiResponse<T>> {
    return this.#client.call<T>(this.company, { method, path, options, expect: 'anything' });
  }
}

/**
 * Calls the payments service for the application's company: the company `default`, or the only configured company.
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
export class PaymentsApiService extends PaymentsApi implements OnApplicationShutdown {
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
    return new PaymentsApi(this.client, id);
  }

  /**
   * Aborts all running calls and closes the connections. Nest calls this method in the last stage of shutdown, so
   * handlers that are still running can call the service until then.
   */
  async onApplicationShutdown(): Promise<void> {
    await this.client.close();
  }
}
