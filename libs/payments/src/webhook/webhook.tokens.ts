/** Nest injection token of the endpoint's path before any prefix (`string | null`). */
export const WEBHOOK_PATH = Symbol('PAYMENTS_WEBHOOK_PATH');
/** Nest injection token of the `ResolvedWebhookOptions`. */
export const WEBHOOK_OPTIONS = Symbol('PAYMENTS_WEBHOOK_OPTIONS');
