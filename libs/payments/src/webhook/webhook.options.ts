import { integerOption, optionsInvalid } from '../payments.validation.js';

/** Where deliveries are received. An extra of `forRoot`, since routes are mapped before async options exist. */
export type WebhookPath = string | false;

/** Default of `webhookPath`. */
export const DEFAULT_WEBHOOK_PATH = 'webhooks/payments';

/** How a delivery's request is read. */
export interface WebhookOptions {
  /** Bytes a body may have at the most; more is answered 413. 1,024 to 67,108,864. Default 1,048,576 (1 MiB). */
  bodyLimitBytes?: number;
}

/** @throws PaymentsError `options_invalid`. */
export function resolveBodyLimit({ bodyLimitBytes }: WebhookOptions): number {
  return integerOption('bodyLimitBytes', bodyLimitBytes, {
    default: 1024 ** 2,
    min: 1024,
    max: 64 * 1024 ** 2,
    unit: 'bytes',
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
