import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Non-public IPv4 networks: loopback, private, link-local, shared, protocol assignments, benchmarking, multicast, reserved. */
const NOT_PUBLIC: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];
/**
 * The IPv6 networks of Teredo and 6to4, which are part of 2000::/3. Their addresses contain an IPv4 address, which can
 * be private.
 */
const TUNNELS: readonly (readonly [network: string, prefix: number])[] = [
  ['2001::', 32],
  ['2002::', 16],
];

const blocked = new BlockList();
for (const [network, prefix] of NOT_PUBLIC) blocked.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of TUNNELS) blocked.addSubnet(network, prefix, 'ipv6');
const global = new BlockList();
// All other IPv6 addresses are loopback, local, multicast, mapped or translated from IPv4, or unassigned.
global.addSubnet('2000::', 3, 'ipv6');

export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !blocked.check(address, 'ipv4');
  return isIPv6(address) && global.check(address, 'ipv6') && !blocked.check(address, 'ipv6');
}
