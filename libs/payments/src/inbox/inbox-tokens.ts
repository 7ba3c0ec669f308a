/** Nest injection token of the `InboxStore` in use. */
export const INBOX_STORE = Symbol('PAYMENTS_INBOX_STORE');
/** Nest injection token of the application's `BodyCodec`, or `null`. */
export const BODY_CODEC = Symbol('PAYMENTS_BODY_CODEC');
/** Nest injection token of the `ResolvedWorkerOptions`. */
export const WORKER_OPTIONS = Symbol('PAYMENTS_WORKER_OPTIONS');
/** Nest injection token of the `ResolvedReceiveOptions`. */
export const RECEIVE_OPTIONS = Symbol('PAYMENTS_RECEIVE_OPTIONS');
/** Nest injection token of the maximum age of an event in milliseconds; see `resolveMaxAge()`. */
export const MAX_AGE_MS = Symbol('PAYMENTS_MAX_AGE_MS');
