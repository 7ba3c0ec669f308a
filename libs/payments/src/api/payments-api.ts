import type { TokenCheck } from './access-token.js';

/** HTTP methods of a call. */
export type ApiMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Options of every call. */
export interface CallOptions {
  /** Signal that aborts the call at any stage: while the call waits for the token, the response or the next attempt. */
  signal?: AbortSignal;
  /**
   * The longest the whole call may take, in milliseconds: the wait for a token, all attempts and the waits between
   * them. 1 to 600,000. Default: the option `deadlineMs`.
   */
  deadlineMs?: number;
  /**
   * Whether the call fails at once if the service's `Retry-After` is longer than `retry.maxRetryAfterMs`. Default
   * `false`: the wait is shortened to `retry.maxRetryAfterMs`.
   */
  obeyRetryAfter?: boolean;
  /** Headers to add. Headers for the token or for the transport, such as `content-length`, cannot be set. */
  headers?: Readonly<Record<string, string>>;
}

/** Options of a call to any path. */
export interface RequestOptions extends CallOptions {
  /**
   * The query parameters. The module encodes these parameters, so the path must not contain a query. A parameter that
   * is `undefined` is left out. An array sends the parameter once per element.
   */
  query?: Readonly<
    Record<
      string,
      string | number | boolean | undefined | readonly (string | number | boolean | undefined)[]
    >
  >;
  /**
   * The path with `{…}` in place of ids, like `/v1/customers/{id}`. Errors, logs and observers show the template
   * instead of the path. Default: the path, with `{id}` in place of each segment that contains a digit, except a
   * version such as `v1`.
   */
  pathTemplate?: string;
  /** The value to send as JSON. If it is `undefined`, the request has no body. A GET or HEAD must have no body. */
  body?: unknown;
}

/** A complete response. */
export interface ApiResponse<T = unknown> {
  /** Status of the response, 200 to 299. */
  readonly status: number;
  /**
   * Headers of the response, with names in lower case. Cookies, headers that request credentials (`www-authenticate`)
   * and headers that contain the token are left out.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed body if it is JSON, otherwise its text; `undefined` if it is empty, as in a 204. */
  readonly body: T;
  /** The id that the service gave the request, if the response contains one. */
  readonly requestId: string | undefined;
}

/**
 * The response body of `GET /v1/transactions/{id}`. The service does not document the fields of this body, so the type
 * declares none. Pass your own type to `getTransaction<T>()`.
 */
export type PaymentTransaction = Readonly<Record<string, unknown>>;

export interface CallSpec {
  method: ApiMethod;
  path: string;
  options: RequestOptions;
  /** `object`: a response that is not a JSON object is an error. `anything`: every response is accepted. */
  expect: 'object' | 'anything';
}

export interface ApiClient {
  /** Makes one call. Rejects with the errors that the doc comment of `PaymentsApi` lists. */
  call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>>;
  /** Requests a token to check the credentials. No call uses this token. @throws PaymentsError `company_unknown` */
  checkToken(companyId: string): Promise<TokenCheck>;
  /** Aborts all running calls, rejects further calls, and resolves when the connections are closed. */
  close(): Promise<void>;
}
