import { isIP } from 'node:net';
import { isPublicAddress } from '../deliveries/public-address.js';

const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Which webhook URLs an emulator accepts, in addition to `https://` URLs of public hosts. */
export interface WebhookPolicy {
  /** Whether the policy rejects addresses of this machine and of private networks. */
  readonly publicOnly: boolean;
  /** Whether the policy accepts plain `http://` for hosts in private networks. */
  readonly allowPrivate: boolean;
}

/**
 * Whether the host name of a URL means this machine: `localhost`, a name that ends with `.localhost`, or a loopback
 * address.
 */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname.toLowerCase());
}

/** Returns an error message if a value does not have the form of a webhook URL, otherwise undefined. */
export function webhookUrlProblem(value: unknown): string | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (!url) return 'must be an absolute URL, such as https://shop.example/webhooks/payments';
  if (url.username || url.password) {
    return 'must not contain a user name or password, because the signature authenticates the deliveries';
  }
  return /^https?:$/.test(url.protocol) ? undefined : 'must be an https:// URL';
}

/**
 * Returns the reason why the policy rejects a well-formed webhook URL, or undefined if the policy accepts it. Does not
 * resolve host names. The service accepts HTTPS only. The emulator also accepts plain HTTP on loopback hosts and, if
 * `allowPrivate` is true, in private networks.
 */
export function webhookPolicyProblem(
  value: string,
  { publicOnly, allowPrivate }: WebhookPolicy,
): string | undefined {
  const { protocol, hostname } = new URL(value);
  const address = hostname.replace(/^\[|\]$/g, '');
  const isAddress = isIP(address) !== 0;
  const loopback = isLoopback(hostname);
  if (publicOnly && (loopback || (isAddress && !isPublicAddress(address)))) return PRIVATE_WEBHOOK;
  if (protocol === 'https:' || loopback) return undefined;
  if (!allowPrivate) {
    return 'must be an https:// URL; plain http:// is for loopback hosts (127.0.0.1, localhost, [::1]), and for private networks with allowPrivateWebhooks (--allow-private-webhooks)';
  }
  return isAddress && isPublicAddress(address)
    ? 'must be an https:// URL; plain http:// is for loopback hosts and private networks'
    : undefined;
}

/**
 * Error message about a webhook URL of a private host. The emulator rejects such a URL if other machines can reach the
 * emulator.
 */
export const PRIVATE_WEBHOOK =
  'must not point to this machine or a private network while other machines can reach the emulator; allowPrivateWebhooks (--allow-private-webhooks) permits such URLs';
