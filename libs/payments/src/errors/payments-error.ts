/**
 * Every `code` a {@link PaymentsError} can carry. A closed union: a `switch` over it is checked by the
 * compiler, and a new code is a minor release.
 */
export type PaymentsErrorCode =
  // A delivery that was refused.
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
  // A delivery that could not be made safe, or not handled.
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
  // The application's own set-up.
  | 'options_invalid'
  | 'handlers_invalid';

/**
 * The one family of errors this package throws, but for a caller's own mistake (an absolute URL, an empty
 * id), which is a `TypeError`.
 *
 * `code` is stable and meant for programs; `message` names the cause and the fix and is meant for people.
 * Neither holds a secret, a token, a signature or a payload, and nor does what `JSON.stringify` and
 * `util.inspect` make of the error.
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
 * Thrown by a handler that knows another attempt cannot help: the delivery goes to the dead letters at once,
 * instead of after the last attempt.
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
