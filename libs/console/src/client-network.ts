import { isIP, isIPv6 } from 'node:net';
import { headerOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';

/**
 * Number of 16-bit groups of an IPv6 address that identify a site. A provider assigns at most a /48 to one customer
 * (RFC 6177).
 */
const SITE_GROUPS = 3;

/**
 * Returns the client's address that a trusted proxy forwarded, if this value is an IP address. Otherwise, returns the
 * remote address of the connection.
 */
export function clientAddress({ ip, socket }: ConsoleRequest): string {
  return ip !== undefined && isIP(ip) !== 0 ? ip : (socket.remoteAddress ?? '');
}

/**
 * Returns the networks that a request came through. The first network is the network of {@link clientAddress}. If that
 * address was forwarded, and the application trusts too many proxies, the client may have invented the address.
 * Therefore the result also contains two networks that the client cannot invent: the network of the address that the
 * nearest proxy added to `X-Forwarded-For`, and the network of the connection.
 */
export function networksOfClient(request: ConsoleRequest): readonly [string, ...string[]] {
  const address = clientAddress(request);
  const { remoteAddress = '' } = request.socket;
  if (address === remoteAddress) return [networkOf(address)];
  const added = headerOf(request, 'x-forwarded-for')?.split(',').at(-1)?.trim() ?? '';
  return [networkOf(address), networkOf(added), networkOf(remoteAddress)];
}

/** Returns the network of an address: the address itself for IPv4 (also if mapped to IPv6), or the /48 for IPv6. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  // URL normalises every form of an address: lower case, without a dotted end.
  const { hostname } = new URL(`http://[${address.replace(/%.*/s, '')}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  if (groups.slice(0, 6).join(':') !== '0:0:0:0:0:ffff') {
    return `${groups.slice(0, SITE_GROUPS).join(':')}::/48`;
  }
  const bytes = groups.slice(6).map((group) => parseInt(group, 16));
  return bytes.flatMap((pair) => [pair >> 8, pair & 255]).join('.');
}
