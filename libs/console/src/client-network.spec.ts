import { describe, expect, it } from '@jest/globals';
import { clientAddress, networkOf, networksOfClient } from './client-network.js';
import type { ConsoleRequest } from './console-request.js';

describe('networkOf', () => {
  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db8::1', '2001:db8:0:0:1::'],
    ['2001:DB8:1:2::1', '2001:0db8:0001:0002:0000:0000:0000:0001'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1:2:3:4:5'],
    ['::1', '::2'],
    ['fe80::1%eth0', 'fe80::2%eth1'],
    ['203.0.113.9', '::ffff:203.0.113.9'],
    ['127.0.0.1', '::ffff:7f00:1'],
  ])('networkOf() returns the same network for %s and %s', (one, other) => {
    expect(networkOf(one)).toBe(networkOf(other));
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:2:2::1'],
    ['2001:db8::1:2:3:4:5', '2001:db8:1::2:2:3:4:5'],
    ['203.0.113.9', '203.0.113.10'],
    ['::ffff:203.0.113.9', '::ffff:203.0.113.10'],
    ['::ffff:203.0.113.9', '::1'],
  ])('networkOf() returns different networks for %s and %s', (one, other) => {
    expect(networkOf(one)).not.toBe(networkOf(other));
  });
});

describe('clientAddress', () => {
  const from = (ip: string | undefined, remoteAddress?: string) =>
    clientAddress({ ip, socket: { remoteAddress } } as ConsoleRequest);

  it.each(['203.0.113.9', '2001:db8::1', '::ffff:203.0.113.9'])(
    'clientAddress() returns the forwarded address %s',
    (ip) => {
      expect(from(ip, '10.0.0.1')).toBe(ip);
    },
  );

  it.each(['unknown', '', '203.0.113.9:4711', '[2001:db8::1]', '203.0.113.999', '_hidden'])(
    'clientAddress() takes the address of the connection if "%s" was forwarded',
    (ip) => {
      expect(from(ip, '10.0.0.1')).toBe('10.0.0.1');
    },
  );

  it('clientAddress() returns an empty text for a request without a connection', () => {
    expect(from(undefined)).toBe('');
  });
});

describe('networksOfClient', () => {
  const of = (ip: string, remoteAddress: string, forwarded: string) =>
    networksOfClient({
      ip,
      socket: { remoteAddress },
      headers: { 'x-forwarded-for': forwarded },
    } as unknown as ConsoleRequest);

  it('networksOfClient() returns only the network of the connection if the application trusts no proxy', () => {
    expect(of('10.0.0.1', '10.0.0.1', '203.0.113.9')).toEqual(['10.0.0.1']);
  });

  it('networksOfClient() returns the networks of a forwarded address, of the nearest proxy and of the connection, in this order', () => {
    expect(of('203.0.113.9', '10.0.0.1', '203.0.113.9, 198.51.100.7')).toEqual([
      '203.0.113.9',
      '198.51.100.7',
      '10.0.0.1',
    ]);
  });
});
