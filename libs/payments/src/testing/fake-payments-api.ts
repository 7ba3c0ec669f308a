import type { TokenCheck } from '../api/access-token.js';
import { PaymentsApiError, statusError } from '../api/api-error.js';
import type { ApiErrorFacts } from '../api/api-error.js';
import { checkPath } from '../api/call-request.js';
import { PaymentsApi } from '../api/payments-api.service.js';
import type { ApiClient, ApiMethod, ApiResponse, RequestOptions } from '../api/payments-api.js';
import { DEFAULT_COMPANY } from '../companies/company.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';

/** A call that the application made. Options that the call did not set are left out. */
export type FakeCall = Pick<RequestOptions, 'query' | 'body' | 'headers'> & {
  readonly company: string;
  readonly method: ApiMethod;
  readonly path: string;
};

/**
 * Response of a {@link FakePaymentsApi}: an `Error` rejects the call, a function gets the call and returns the body,
 * and any other value is the body.
 */
export type FakeResponse =
  ((call: FakeCall) => unknown) | object | string | number | boolean | null | undefined;

/**
 * A `PaymentsApiService` without a network: it records calls and returns the responses that the test sets. A call
 * without a response rejects with an error that names the call.
 *
 * @example
 * ```ts
 * const payments = new FakePaymentsApi();
 * payments.respond('GET', '/v1/transactions/t-1', { status: 'complete', amount: 350 });
 * const orders = new Orders(payments); // or: .overrideProvider(PaymentsApiService).useValue(payments)
 *
 * await orders.markPaid(paymentEvent('transaction.completed', { transactionId: 't-1' }), handlerContext());
 * expect(payments.calls).toEqual([{ company: 'default', method: 'GET', path: '/v1/transactions/t-1' }]);
 * ```
 */
export class FakePaymentsApi extends PaymentsApi {
  readonly #client: ScriptedClient;

  constructor() {
    const client = new ScriptedClient();
    super(client, DEFAULT_COMPANY);
    this.#client = client;
  }

  /** The calls so far, of every company, in the order in which they were made. */
  get calls(): readonly FakeCall[] {
    return this.#client.calls;
  }

  /**
   * Sets the responses to calls. With several responses, each call gets the next response, and the last response is
   * repeated.
   *
   * @param path the whole path, or a template with `{…}` instead of ids, such as `/v1/transactions/{id}`. An exact path
   *   has priority over a template, and a later `respond()` over an earlier one.
   * @example
   * ```ts
   * payments.respond('GET', '/v1/transactions/{id}', apiError(503), { status: 'complete' });
   * payments.respond('POST', '/v1/payouts', ({ body }) => ({ id: 'p-1', accepted: body }));
   * ```
   */
  respond(
    method: ApiMethod,
    path: string,
    ...responses: readonly [FakeResponse, ...FakeResponse[]]
  ): this {
    this.#client.add(method, path, responses);
    return this;
  }

  /**
   * Returns the API for another company, with the same responses. The calls of this API are recorded in {@link calls}
   * too.
   */
  forCompany(id: string): PaymentsApi {
    return new PaymentsApi(this.#client, id);
  }

  /** Does nothing, because there is no connection to close. */
  async onApplicationShutdown(): Promise<void> {}
}

interface FakeRoute {
  readonly method: ApiMethod;
  readonly path: string;
  readonly pattern: RegExp;
  readonly responses: FakeResponse[];
}

class ScriptedClient implements ApiClient {
  readonly calls: FakeCall[] = [];
  #routes: FakeRoute[] = [];

  add(method: ApiMethod, path: string, responses: readonly FakeResponse[]): void {
    const pattern = RegExp(
      `^${path.replace(/[^\w/{}]/g, '\\$&').replace(/\{[^}/]*\}/g, '[^/]+')}$`,
    );
    const others = this.#routes.filter((route) => route.method !== method || route.path !== path);
    this.#routes = [{ method, path, pattern, responses: [...responses] }, ...others];
  }

  async call<T>(company: string, spec: Parameters<ApiClient['call']>[1]): Promise<ApiResponse<T>> {
    const { method, path } = spec;
    checkPath(path);
    const call: FakeCall = { company, method, path, ...definedOptions(spec.options) };
    this.calls.push(call);
    const response = this.#next(method, path);
    if (response instanceof Error) throw response;
    const body = (await (typeof response === 'function'
      ? (response as (call: FakeCall) => unknown)(call)
      : response)) as T;
    return { status: 200, headers: {}, body, requestId: undefined };
  }

  async checkToken(): Promise<TokenCheck> {
    return { ok: true, lifetimeMs: 3_599_000, durationMs: 0 };
  }

  async close(): Promise<void> {}

  #next(method: ApiMethod, path: string): FakeResponse {
    const matching = this.#routes.filter(
      (route) => route.method === method && route.pattern.test(path),
    );
    const route = matching.find((candidate) => candidate.path === path) ?? matching[0];
    if (route === undefined) {
      throw new Error(
        `FakePaymentsApi has no response for ${method} ${path}. Set it: respond('${method}', '${path}', …).`,
      );
    }
    return route.responses.length > 1 ? route.responses.shift() : route.responses[0];
  }
}

function definedOptions({ query, body, headers }: RequestOptions): Partial<FakeCall> {
  const fields = Object.entries({ query, body, headers });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/**
 * Builds the error with which `PaymentsApiService` rejects a failed call.
 *
 * @param cause the status of the response, which determines the code (404: `not_found`), or the code of a call without
 *   a response, such as `timeout`, `connection_failed` or `outcome_unknown`.
 * @param facts replace the defaults: company `default`, `GET /v1/transactions/{id}`, 1 attempt.
 * @example
 * ```ts
 * payments.respond('GET', '/v1/transactions/t-9', apiError(404));
 * payments.respond('POST', '/v1/payouts', apiError('outcome_unknown', { method: 'POST', path: '/v1/payouts' }));
 * ```
 */
export function apiError(
  cause: number | PaymentsErrorCode,
  facts: Partial<ApiErrorFacts> = {},
): PaymentsApiError {
  const complete: ApiErrorFacts = {
    company: DEFAULT_COMPANY,
    method: 'GET',
    path: '/v1/transactions/{id}',
    attempts: 1,
    ...facts,
  };
  const { method, path } = complete;
  if (typeof cause === 'number') {
    return statusError({ ...complete, status: cause, safe: method === 'GET' || method === 'HEAD' });
  }
  return new PaymentsApiError(cause, `${method} ${path} failed: ${cause}`, complete);
}
