/** HTTP methods of a call. */
export type ApiMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A value of the query string. `undefined` is left out. */
export type QueryValue = string | number | boolean | undefined;

/** Options of every call. */
export interface CallOptions {
  /** Ends the call at any stage: while it waits for the token, the answer or the next attempt. */
  signal?: AbortSignal;
  /**
   * The longest the whole call may take, in milliseconds: token, attempts and the waits between them. 1 to 600,000.
   * Default: the option `deadlineMs`.
   */
  deadlineMs?: number;
  /** Headers to add. Headers for the token or for the transport, such as `content-length`, cannot be set. */
  headers?: Readonly<Record<string, string>>;
}

/** Options of a call to any path. */
export interface RequestOptions extends CallOptions {
  /** The query string. It is encoded by the module; a path must not contain one. An array repeats its name. */
  query?: Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  /**
   * The path without its ids, like `/v1/customers/{id}`. Errors, logs and `onRequest` show it instead of the path.
   * Default: the path, with its ids.
   */
  pathTemplate?: string;
}

/** Options of a call with a body. */
export interface BodyOptions extends RequestOptions {
  /** Sent as JSON. `undefined` sends no body. */
  body?: unknown;
  /**
   * Sent in the header that the option `idempotencyHeader` names; without that option it is rejected. It does not
   * cause retries.
   */
  idempotencyKey?: string;
}

/** A complete answer. */
export interface ApiResponse<T = unknown> {
  /** 200 to 299. */
  readonly status: number;
  /** Names in lower case; without cookies, challenges and headers that contain the token. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed if it is JSON, otherwise its text; `undefined` if it is empty, as in a 204. */
  readonly body: T;
  /** The request's id in the log of the service, if the answer contains one. */
  readonly requestId: string | undefined;
}

/**
 * The body of `GET /v1/transactions/{id}`. The service does not document its fields, so none is declared here: pass
 * your own type to the method.
 */
export type PaymentTransaction = Readonly<Record<string, unknown>>;

/**
 * The payments service for one company. Every method adds the company's token, obeys the deadline, and rejects with
 *
 * - `TypeError` for an invalid argument, before anything is sent;
 * - {@link PaymentsTokenError} if there is no token;
 * - {@link PaymentsError} `company_unknown` if there is no such company;
 * - {@link PaymentsApiError} for everything else.
 *
 * The option `retry` decides when a GET is retried. Other methods are retried only if no byte can have reached the
 * service; if it is unknown whether the call had an effect, the error is `outcome_unknown`.
 *
 * `get`, `post`, `put`, `patch` and `delete` resolve to the answer's body: parsed if it is JSON, otherwise its text,
 * `undefined` if it is empty.
 */
export interface PaymentsApi {
  /** Id of the company that the calls are made for. */
  readonly company: string;

  /**
   * Returns a transaction in its authoritative current state (`GET /v1/transactions/{id}`). An answer that is not a
   * JSON object is `response_invalid`.
   *
   * @example
   * ```ts
   * const transaction = await payments.getTransaction(event.data.transactionId);
   * ```
   */
  getTransaction<T extends object = PaymentTransaction>(
    id: string,
    options?: CallOptions,
  ): Promise<T>;

  /**
   * Requests a `webhook.test` delivery to the configured URL (`POST /v1/webhooks/test`). The answer contains whether it
   * succeeded; its fields are not documented.
   */
  sendTestWebhook<T = unknown>(options?: CallOptions): Promise<T>;

  /** `GET path`. */
  get<T = unknown>(path: string, options?: RequestOptions): Promise<T>;
  /** `POST path`. */
  post<T = unknown>(path: string, options?: BodyOptions): Promise<T>;
  /** `PUT path`. */
  put<T = unknown>(path: string, options?: BodyOptions): Promise<T>;
  /** `PATCH path`. */
  patch<T = unknown>(path: string, options?: BodyOptions): Promise<T>;
  /** `DELETE path`. */
  delete<T = unknown>(path: string, options?: BodyOptions): Promise<T>;

  /**
   * Makes any call and returns the complete answer.
   *
   * @param path starts with `/` and is relative to the company's base URL. An absolute URL, `//host`, `..`, a
   *   backslash, a query, a fragment or characters that need percent-encoding cause a `TypeError`. Encode ids with
   *   `encodeURIComponent`.
   * @example
   * ```ts
   * const { body, requestId } = await payments.request('POST', '/v1/some-endpoint', { body: { amount: 100 } });
   * ```
   */
  request<T = unknown>(
    method: ApiMethod,
    path: string,
    options?: BodyOptions,
  ): Promise<ApiResponse<T>>;
}
