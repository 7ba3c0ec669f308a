import { isIP } from 'node:net';
import { isPublicAddress } from '../deliveries/public-address.js';

const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Which webhook URLs an emulator takes besides `https://` ones of public hosts. */
export interface WebhookPolicy {
  /** Whether it refuses addresses of this machine and of private networks. */
  readonly publicOnly: boolean;
  /** Whether it takes plain `http://` for hosts in private networks. */
  readonly allowPrivate: boolean;
}

/** Whether a URL's host name means this machine. */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname.toLowerCase());
}

/** What is wrong with the form of a webhook URL, or undefined. */
export function webhookUrlProblem(value: unknown): string | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (!url) return 'must be a whole URL, such as https://shop.example/webhooks/payments';
  if (url.username || url.password) {
    return 'must hold no user name or password: a delivery proves itself by its signature';
  }
  return /^https?:$/.test(url.protocol) ? undefined : 'must be an https:// URL';
}

/**
 * Why the policy refuses a webhook URL of a valid form, as far as the URL itself tells, or undefined. The service takes
 * HTTPS only (section 2 of its page); the emulator also takes plain HTTP if nothing leaves the machine or, if allowed,
 * the private network.
 */
export function webhookPolicyProblem(
  value: string,
  { publicOnly, allowPrivate }: WebhookPolicy,
): string | undefined {
  const { protocol, hostname } = new URL(value);
  const address = hostname.replace(/^\[|\]$/g, '');
  const literal = isIP(address) !== 0;
  const own = isLoopback(hostname);
  if (publicOnly && (own || (literal && !isPublicAddress(address)))) return PRIVATE_WEBHOOK;
  if (protocol === 'https:' || own) return undefined;
  if (!allowPrivate) {
    return 'must be an https:// URL; plain http:// is for loopback hosts (127.0.0.1, localhost, [::1]), and for private networks with allowPrivateWebhooks (--allow-private-webhooks)';
  }
  return literal && isPublicAddress(address)
    ? 'must be an https:// URL; plain http:// is for loopback hosts and private networks'
    : undefined;
}

/** Why an emulator that others can reach does not send to a host. */
export const PRIVATE_WEBHOOK =
  'must not lead to this machine or a private network while others can reach the emulator; allowPrivateWebhooks (--allow-private-webhooks) permits it';
