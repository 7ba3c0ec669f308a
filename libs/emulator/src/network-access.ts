import { randomBytes } from 'node:crypto';
import { isLoopback } from './companies/webhook-url.js';
import type { WebhookPolicy } from './companies/webhook-url.js';

/** Which machines can reach an emulator, and the protections that follow from it. */
export interface NetworkAccess {
  /** Whether other machines can reach it, by `host` or by a public URL. */
  readonly remoteAccess: boolean;
  /** The token that the controls require. Undefined: they require none. */
  readonly controlToken: string | undefined;
  readonly webhookPolicy: WebhookPolicy;
}

/** The options that determine the network access; see `PaymentsEmulatorOptions`. */
export interface NetworkOptions {
  readonly host?: string | undefined;
  readonly publicUrl?: string | undefined;
  readonly productionPublicUrl?: string | undefined;
  readonly controlToken?: string | undefined;
  readonly allowPrivateWebhooks?: boolean | undefined;
  readonly allowProduction?: boolean | undefined;
}

const TOKEN = /^[\x21-\x7e]{16,256}$/;

/** Derives the network access from the options. Adds an error message to `problems` for each invalid option. */
export function resolveNetworkAccess(
  options: NetworkOptions,
  nodeEnv: string | undefined,
  problems: string[],
): NetworkAccess {
  const { controlToken, host = '127.0.0.1', publicUrl, productionPublicUrl } = options;
  const allowPrivate = options.allowPrivateWebhooks ?? false;
  if (nodeEnv === 'production' && options.allowProduction !== true) {
    problems.push(
      'allowProduction is needed to start with NODE_ENV=production: the emulator signs events of payments that never happened',
    );
  }
  if (controlToken !== undefined && !TOKEN.test(controlToken)) {
    problems.push('controlToken must be 16 to 256 characters of ASCII without spaces');
  }
  const hostnames = [
    host === '::1' ? '[::1]' : host,
    ...[publicUrl, productionPublicUrl].flatMap((url) => URL.parse(url ?? '')?.hostname ?? []),
  ];
  const remoteAccess = !hostnames.every(isLoopback);
  return {
    remoteAccess,
    // Not generated from the seed, which others may know.
    controlToken:
      controlToken ?? (remoteAccess ? `ctl_${randomBytes(16).toString('hex')}` : undefined),
    webhookPolicy: { publicOnly: remoteAccess && !allowPrivate, allowPrivate },
  };
}
