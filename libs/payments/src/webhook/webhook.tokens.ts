/** Nest injection token of the endpoint's path before any prefix (`string | null`). */
export const WEBHOOK_PATH = Symbol('PAYMENTS_WEBHOOK_PATH');
/** Nest injection token of the body limit, in bytes. */
export const BODY_LIMIT = Symbol('PAYMENTS_BODY_LIMIT');
