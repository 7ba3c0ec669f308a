/**
 * Every `code` of a {@link PaymentsError}. A closed union: the compiler checks that a `switch` covers it. A new code is
 * a minor release.
 */
export type PaymentsErrorCode =
  // A rejected delivery.
  | 'signature_missing'
  | 'signature_malformed'
  | 'signature_mismatch'
  | 'company_unknown'
  | 'payload_invalid'
  | 'payload_too_large'
  | 'content_type_unsupported'
  | 'content_encoding_unsupported'
  | 'request_rejected'
  | 'webhook_busy'
  | 'body_timeout'
  | 'raw_body_unavailable'
  // A delivery that could not be stored or handled.
  | 'directory_unavailable'
  | 'inbox_unavailable'
  | 'inbox_full'
  | 'deadline_passed'
  | 'handlers_failed'
  | 'handler_timeout'
  | 'data_invalid'
  | 'body_undecodable'
  | 'unrecoverable'
  | 'lease_lost'
  | 'commit_unsupported'
  | 'commit_refused'
  // The access token.
  | 'invalid_credentials'
  | 'token_unavailable'
  // A call to the payments service.
  | 'authentication_failed'
  | 'permission_denied'
  | 'not_found'
  | 'conflict'
  | 'validation_failed'
  | 'rate_limited'
  | 'server_error'
  | 'unexpected_status'
  | 'redirect_refused'
  | 'connection_failed'
  | 'timeout'
  | 'aborted'
  | 'outcome_unknown'
  | 'response_too_large'
  | 'response_invalid'
  // The configuration of the application.
  | 'options_invalid'
  | 'handlers_invalid';

/**
 * Base class of all errors that this package throws, except for a mistake of the caller (an absolute URL, an empty
 * id): that is a `TypeError`.
 *
 * `code` is stable and meant for programs; `message` names the cause and the fix and is meant for people.
 * Neither contains a secret, a token, a signature or a payload, and neither do the results of `JSON.stringify` and
 * `util.inspect`.
 *
 * @example
 * ```ts
 * try {
 *   await payments.getTransaction(id);
 * } catch (error) {
 *   if (error instanceof PaymentsError && error.code === 'not_found') return null;
 *   throw error;
 * }
 * ```
 */
export class PaymentsError extends Error {
  override readonly name: string = 'PaymentsError';

  constructor(
    /** What went wrong, for programs. */
    readonly code: PaymentsErrorCode,
    message: string,
    /** `cause`: the error that led to this one. */
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** Name, code, message and facts: what is safe to log. */
  toJSON(): Record<string, unknown> {
    return { ...(this as object), name: this.name, code: this.code, message: this.message };
  }
}

/**
 * A handler throws it if another attempt cannot succeed. The delivery becomes a dead letter at once, instead of after
 * the last attempt.
 *
 * @example
 * ```ts
 * if (transaction.currency !== 'KES') throw new UnrecoverableError('only KES is booked here');
 * ```
 */
export class UnrecoverableError extends PaymentsError {
  override readonly name = 'UnrecoverableError';

  constructor(message: string) {
    super('unrecoverable', message);
  }
}
