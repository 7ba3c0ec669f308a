import { checkPath } from '../api/http/request-url.js';
import { CompanyApi } from '../api/company-api.js';
import type { ApiClient } from '../api/company-api.js';
import type { ApiMethod, ApiResponse, BodyOptions, PaymentsApi } from '../api/payments-api.js';
import { DEFAULT_COMPANY } from '../companies/company.js';

/** A call that the application made. Fields that the call did not give are left out. */
export type FakeCall = Pick<BodyOptions, 'query' | 'body' | 'headers' | 'idempotencyKey'> & {
  readonly company: string;
  readonly method: ApiMethod;
  readonly path: string;
};

/**
 * What a call gets: an `Error` rejects the call, a function is called and its result is the body, and anything
 * else is the body.
 */
export type FakeAnswer =
  ((call: FakeCall) => unknown) | object | string | number | boolean | null | undefined;

/**
 * A `PaymentsApiService` without a network: it records calls and gives the answers that the test sets. A call
 * without an answer rejects with an error that names the call.
 *
 * @example
 * ```ts
 * const payments = new FakePaymentsApi();
 * payments.answer('GET', '/v1/transactions/t-1', { status: 'complete', amount: 350 });
 * const orders = new Orders(payments); // or: .overrideProvider(PaymentsApiService).useValue(payments)
 *
 * await orders.markPaid(paymentEvent('transaction.completed', { transactionId: 't-1' }), handlerContext());
 * expect(payments.calls).toEqual([{ company: 'default', method: 'GET', path: '/v1/transactions/t-1' }]);
 * ```
 */
export class FakePaymentsApi extends CompanyApi {
  readonly #script: ScriptedClient;

  constructor() {
    const script = new ScriptedClient();
    super(script, DEFAULT_COMPANY);
    this.#script = script;
  }

  /** The calls so far, of every company, in their order. */
  get calls(): readonly FakeCall[] {
    return this.#script.calls;
  }

  /**
   * Sets what calls get. Of several answers each call takes the next, and the last one stays.
   *
   * @param path the whole path, or a template with `{…}` in place of ids, such as `/v1/transactions/{id}`. An
   *   exact path has priority over a template, and a later answer over an earlier one.
   * @example
   * ```ts
   * payments.answer('GET', '/v1/transactions/{id}', apiError(503), { status: 'complete' });
   * payments.answer('POST', '/v1/payouts', ({ body }) => ({ id: 'p-1', accepted: body }));
   * ```
   */
  answer(
    method: ApiMethod,
    path: string,
    ...answers: readonly [FakeAnswer, ...FakeAnswer[]]
  ): this {
    this.#script.add(method, path, answers);
    return this;
  }

  /** The same answers and calls, for another company. */
  forCompany(id: string): PaymentsApi {
    return new CompanyApi(this.#script, id);
  }

  /** Nothing to close. */
  async onApplicationShutdown(): Promise<void> {}
}

interface Route {
  readonly method: ApiMethod;
  readonly path: string;
  readonly pattern: RegExp;
  readonly answers: FakeAnswer[];
}

class ScriptedClient implements ApiClient {
  readonly calls: FakeCall[] = [];
  #routes: Route[] = [];

  add(method: ApiMethod, path: string, answers: readonly FakeAnswer[]): void {
    const pattern = RegExp(
      `^${path.replace(/[^\w/{}]/g, '\\$&').replace(/\{[^}/]*\}/g, '[^/]+')}$`,
    );
    const others = this.#routes.filter((route) => route.method !== method || route.path !== path);
    this.#routes = [{ method, path, pattern, answers: [...answers] }, ...others];
  }

  async call<T>(company: string, spec: Parameters<ApiClient['call']>[1]): Promise<ApiResponse<T>> {
    const { method, path } = spec;
    checkPath(path);
    const call: FakeCall = { company, method, path, ...given(spec.options) };
    this.calls.push(call);
    const answer = this.#next(method, path);
    if (answer instanceof Error) throw answer;
    const body = (await (typeof answer === 'function'
      ? (answer as (call: FakeCall) => unknown)(call)
      : answer)) as T;
    return { status: 200, headers: {}, body, requestId: undefined };
  }

  async close(): Promise<void> {}

  #next(method: ApiMethod, path: string): FakeAnswer {
    const fitting = this.#routes.filter(
      (route) => route.method === method && route.pattern.test(path),
    );
    const route = fitting.find((one) => one.path === path) ?? fitting[0];
    if (route === undefined) {
      throw new Error(
        `FakePaymentsApi has no answer for ${method} ${path}. Set one: answer('${method}', '${path}', …).`,
      );
    }
    return route.answers.length > 1 ? route.answers.shift() : route.answers[0];
  }
}

function given({ query, body, headers, idempotencyKey }: BodyOptions): Partial<FakeCall> {
  const fields = Object.entries({ query, body, headers, idempotencyKey });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}
