import { describe, expect, it } from '@jest/globals';
import { isPublicAddress } from './public-address.js';

describe('isPublicAddress', () => {
  it.each(['8.8.8.8', '172.15.0.1', '172.32.0.1', '100.63.0.1', '2606:4700::1111', '2001:db8::1'])(
    'isPublicAddress() returns true for %s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it.each([
    ['loopback', ['127.0.0.1', '127.255.255.255', '::1']],
    ['unspecified', ['0.0.0.0', '0.1.2.3', '::']],
    ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd00::2']],
    ['shared', ['100.64.0.1', '100.127.255.255']],
    ['link-local', ['169.254.169.254', 'fe80::1', 'febf::1', 'fe80::1%eth0']],
    ['multicast', ['224.0.0.1', '239.1.2.3', 'ff02::1']],
    ['reserved', ['240.0.0.1', '255.255.255.255', '192.0.0.8', '198.18.0.1']],
    [
      'IPv4 mapped to IPv6',
      ['::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a00:1', '::ffff:8.8.8.8'],
    ],
    ['IPv4 in IPv6', ['64:ff9b::a00:1', '2002:a00:1::', '2001:0:a00:1::', '::10.0.0.1']],
    ['not an address', ['localhost', '', '10.0.0']],
  ])('isPublicAddress() returns false for addresses of the kind: %s', (_, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });
});
