import { pathSegment } from './http/request-url.js';
import type { CallSpec } from './call/call-request.js';
import type {
  ApiMethod,
  ApiResponse,
  BodyOptions,
  CallOptions,
  PaymentsApi,
  PaymentTransaction,
  RequestOptions,
} from './payments-api.js';

const TRANSACTION = '/v1/transactions/{id}';
const TEST_WEBHOOK = '/v1/webhooks/test';

/** Makes calls for any company. */
export interface ApiClient {
  /** Makes one call. Rejects as {@link PaymentsApi} describes. */
  call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>>;
  /** Ends the calls under way, rejects further ones and closes the connections. Resolves when they are closed. */
  close(): Promise<void>;
}

/** {@link PaymentsApi} for one company: each method makes one call. */
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

  async get<T = unknown>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>('GET', path, options)).body;
  }

  async post<T = unknown>(path: string, options: BodyOptions = {}): Promise<T> {
    return (await this.request<T>('POST', path, options)).body;
  }

  async put<T = unknown>(path: string, options: BodyOptions = {}): Promise<T> {
    return (await this.request<T>('PUT', path, options)).body;
  }

  async patch<T = unknown>(path: string, options: BodyOptions = {}): Promise<T> {
    return (await this.request<T>('PATCH', path, options)).body;
  }

  async delete<T = unknown>(path: string, options: BodyOptions = {}): Promise<T> {
    return (await this.request<T>('DELETE', path, options)).body;
  }

  async request<T = unknown>(
    method: ApiMethod,
    path: string,
    options: BodyOptions = {},
  ): Promise<ApiResponse<T>> {
    return this.#client.call<T>(this.company, { method, path, options, expect: 'anything' });
  }
}
