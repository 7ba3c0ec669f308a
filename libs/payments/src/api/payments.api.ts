/** HTTP methods a call can have. */
export type ApiMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A value of the query string. `undefined` is left out; an array repeats its name. */
export type QueryValue = string | number | boolean | undefined;

/** What every call can be given. */
export interface CallOptions {
  /** Ends the call, whatever it waits for: the token, the answer, or its next try. */
  signal?: AbortSignal;
  /**
   * The longest the whole call may take, in milliseconds: token, tries and waits. 1 to 600,000. Default: the
   * option `deadlineMs`.
   */
  deadlineMs?: number;
  /** Headers to add. Those that carry the token, or frame the message, can't be set. */
  headers?: Readonly<Record<string, string>>;
}

/** What a call of the caller's own making can be given. */
export interface RequestOptions extends CallOptions {
  /** The query string, encoded here. A path can't hold one. */
  query?: Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  /**
   * The path with its ids left out, like `/v1/customers/{id}`: what errors, logs and `onRequest` show in place
   * of the path. Default: the path, ids and all.
   */
  pathTemplate?: string;
}

/** What a call with a body can be given. */
export interface BodyOptions extends RequestOptions {
  /** Sent as JSON. `undefined` sends no body. */
  body?: unknown;
  /**
   * Sent in the header that the option `idempotencyHeader` names; without that option it is refused. It
   * doesn't make the call be tried again.
   */
  idempotencyKey?: string;
}

/** An answer, whole. */
export interface ApiResponse<T = unknown> {
  /** 200 to 299. */
  readonly status: number;
  /** Names in lower case; without cookies, challenges and anything that holds the token. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Parsed where it is JSON. Its text where it is not. `undefined` where there is none, as in a 204.
   */
  readonly body: T;
  /** What the service calls this request in its own log, where it said so. */
  readonly requestId: string | undefined;
}

/**
 * The body of `GET /v1/transactions/{id}`. The service does not document its fields, so none is promised here: give
 * the method a type of your own.
 */
export type PaymentTransaction = Readonly<Record<string, unknown>>;

/**
 * The payments service, as one company calls it. Every method adds the company's token, obeys the deadline,
 * and rejects with
 *
 * - `TypeError` for a mistake of the caller's own, before anything is sent;
 * - {@link PaymentsTokenError} where no token can be had;
 * - {@link PaymentsApiError} for everything else;
 * - {@link PaymentsError} `company_unknown` where there is no such company.
 *
 * A GET is tried again as the option `retry` says. Anything else is tried again only where no byte can have
 * reached the service; where its outcome is unknown, the error is `outcome_unknown`.
 *
 * The verbs resolve to the answer's body: parsed where it is JSON, its text where it is not, `undefined` where
 * it is empty.
 */
export interface PaymentsApi {
  /** Id of the company whose API this is. */
  readonly company: string;

  /**
   * A transaction by its id: the authoritative current state (`GET /v1/transactions/{id}`). An
   * answer that is no JSON object is `response_invalid`.
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
   * Asks the service for a `webhook.test` delivery to the configured URL (`POST /v1/webhooks/test`). The answer tells whether it succeeded; its shape is not shown.
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
   * Any call, and its whole answer.
   *
   * @param path begins with `/` and stays under the company's base URL. An absolute URL, `//host`, `..`, a
   *   backslash, a query, a fragment or anything not percent-encoded is a `TypeError`. Put ids through
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
