import { randomBytes } from 'node:crypto';
import { isLoopback } from './companies/webhook-url.js';
import type { WebhookPolicy } from './companies/webhook-url.js';

/** Whether other machines can reach an emulator, and the protections against them. */
export interface NetworkAccess {
  /** Whether other machines can reach the emulator, by `host` or by a public URL. */
  readonly remoteAccess: boolean;
  /** The token that the controls require. Undefined if the controls require no token. */
  readonly controlToken: string | undefined;
  readonly webhookPolicy: WebhookPolicy;
}

/** Options of the emulator that determine which machines can reach it. */
export interface NetworkOptions {
  /**
   * The address to listen on. Default: `127.0.0.1`, this machine only. If this address or a public URL is not loopback,
   * other machines can reach the emulator. For an emulator that other machines can reach, the controls require
   * `controlToken`, webhook URLs must point to public addresses, and the delivery log keeps only 256 bytes and the
   * `Content-Type` of each response.
   */
  readonly host?: string | undefined;
  /** URL of the sandbox host as clients see it, without a path. Default: `http://host:port`. */
  readonly publicUrl?: string | undefined;
  /** URL of the production host as clients see it, without a path. Default: `http://host:port`. */
  readonly productionPublicUrl?: string | undefined;
  /**
   * The token that the controls and pages under `/emulator` require, as the password of HTTP Basic or in
   * `Authorization: Bearer`; 16 to 256 characters of ASCII without spaces. The checkout pages and the endpoints with an
   * access token do not require this token. Default: a random token if other machines can reach the emulator, otherwise
   * none.
   */
  readonly controlToken?: string | undefined;
  /**
   * Whether webhook URLs may point to this machine and to private networks even if other machines can reach the emulator,
   * and may be `http://` in private networks. Default: false.
   */
  readonly allowPrivateWebhooks?: boolean | undefined;
  /** Whether the emulator may start with `NODE_ENV=production`. Default: false. */
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
      'allowProduction is needed to start with NODE_ENV=production, because the emulator signs events of payments that never happened',
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
    // The token is random and does not depend on the seed, because other people may know the seed.
    controlToken:
      controlToken ?? (remoteAccess ? `ctl_${randomBytes(16).toString('hex')}` : undefined),
    webhookPolicy: { publicOnly: remoteAccess && !allowPrivate, allowPrivate },
  };
}
