import { randomBytes } from 'node:crypto';
import { isLoopback } from './companies/webhook-url.js';
import type { WebhookPolicy } from './companies/webhook-url.js';
import type { PaymentsEmulatorOptions } from './emulator.options.js';

/** Who can reach an emulator, and what that changes. */
export interface Exposure {
  /** Whether others than this machine can reach it: by `host`, or by a public URL. */
  readonly exposed: boolean;
  /** What the controls demand; undefined if they demand nothing. */
  readonly controlToken: string | undefined;
  readonly webhookPolicy: WebhookPolicy;
}

const TOKEN = /^[\x21-\x7e]{16,256}$/;

/** Adds to `problems` what is wrong with the options. */
export function resolveExposure(
  options: PaymentsEmulatorOptions,
  environment: string | undefined,
  problems: string[],
): Exposure {
  const { controlToken, host = '127.0.0.1', publicUrl, productionPublicUrl } = options;
  const allowPrivate = options.allowPrivateWebhooks ?? false;
  if (environment === 'production' && options.allowProduction !== true) {
    problems.push(
      'allowProduction is needed to start with NODE_ENV=production: the emulator signs events of payments that never happened',
    );
  }
  if (controlToken !== undefined && !TOKEN.test(controlToken)) {
    problems.push('controlToken must be 16 to 256 characters of ASCII without spaces');
  }
  const names = [
    host === '::1' ? '[::1]' : host,
    ...[publicUrl, productionPublicUrl].flatMap((url) => URL.parse(url ?? '')?.hostname ?? []),
  ];
  const exposed = !names.every(isLoopback);
  return {
    exposed,
    // Never from the seed, which may be known.
    controlToken: controlToken ?? (exposed ? `ctl_${randomBytes(16).toString('hex')}` : undefined),
    webhookPolicy: { publicOnly: exposed && !allowPrivate, allowPrivate },
  };
}
