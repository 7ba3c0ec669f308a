const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether a URL's host name means this machine. */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname.toLowerCase());
}

/**
 * What is wrong with a webhook URL, or undefined. The service takes HTTPS only (section 2 of its
 * page); the emulator also takes plain HTTP where nothing leaves the machine.
 */
export function webhookUrlProblem(value: unknown): string | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (!url) return 'must be a whole URL, such as https://shop.example/webhooks/payments';
  if (url.username || url.password) {
    return 'must hold no user name or password: a delivery proves itself by its signature';
  }
  if (url.protocol === 'https:') return undefined;
  if (url.protocol !== 'http:') return 'must be an https:// URL';
  if (isLoopback(url.hostname)) return undefined;
  return 'must be an https:// URL; plain http:// is for loopback hosts (127.0.0.1, localhost, [::1])';
}
