import {
  integerOption,
  optionsInvalid,
  refuseUnknownNames,
  shown,
} from '../payments.validation.js';
import type { IntegerBounds } from '../payments.validation.js';

/** Where deliveries are received. An extra of `forRoot`, since routes are mapped before async options exist. */
export type WebhookPath = string | false;

/** Default of `webhookPath`. */
export const DEFAULT_WEBHOOK_PATH = 'webhooks/payments';

/** How the requests of deliveries are admitted and read. Every field has a default. */
export interface WebhookOptions {
  /** Maximum size of a body in bytes; a larger one is answered 413. 1,024 to 67,108,864. Default 1,048,576 (1 MiB). */
  bodyLimitBytes?: number;
}

/** {@link WebhookOptions}, complete. */
export type ResolvedWebhookOptions = Readonly<Required<WebhookOptions>>;

const BOUNDS = {
  bodyLimitBytes: { default: 1024 ** 2, min: 1024, max: 64 * 1024 ** 2, unit: 'bytes' },
} satisfies Record<keyof WebhookOptions, IntegerBounds>;

/** @throws PaymentsError `options_invalid`. */
export function resolveWebhookOptions(options: WebhookOptions = {}): ResolvedWebhookOptions {
  if (typeof options !== 'object' || options === null) {
    throw optionsInvalid(`"webhook" must be an object of options; it is ${shown(options)}.`);
  }
  refuseUnknownNames('webhook.', options, Object.keys(BOUNDS));
  const option = (name: keyof typeof BOUNDS): number =>
    integerOption(`webhook.${name}`, options[name], BOUNDS[name]);
  return Object.freeze({
    bodyLimitBytes: option('bodyLimitBytes'),
  });
}

/** `/webhooks/payments` of `webhooks/payments`; `null` where no endpoint is mounted. */
export function resolveWebhookPath(path: WebhookPath = DEFAULT_WEBHOOK_PATH): string | null {
  if (path === false) return null;
  const trimmed = typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '') : '';
  if (!/^[\w.~-]+(\/[\w.~-]+)*$/.test(trimmed)) {
    throw optionsInvalid(
      '"webhookPath" must be a plain path such as "webhooks/payments", without parameters or wildcards, or false ' +
        'for a controller of your own.',
    );
  }
  return `/${trimmed}`;
}
