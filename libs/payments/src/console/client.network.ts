import { isIPv6 } from 'node:net';

/**
 * What an address counts as: whoever has one of IPv6 has all of its /64, and one of IPv4 is itself, written as IPv6
 * too.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  // In one form, of lower case and without the dots that may end it.
  const { hostname } = new URL(`http://[${address.replace(/%.*/s, '')}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  const mapped = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  return mapped ? groups.join(':') : `${groups.slice(0, 4).join(':')}::/64`;
}
