/** Nest injection token of the `InboxStore` in use. */
export const INBOX_STORE = Symbol('PAYMENTS_INBOX_STORE');
/** Nest injection token of the `ResolvedWorkerOptions`. */
export const WORKER_OPTIONS = Symbol('PAYMENTS_WORKER_OPTIONS');
/** Nest injection token of the `ResolvedReceiveOptions`. */
export const RECEIVE_OPTIONS = Symbol('PAYMENTS_RECEIVE_OPTIONS');
