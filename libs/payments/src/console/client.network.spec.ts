import { describe, expect, it } from '@jest/globals';
import { networkOf } from './client.network.js';

describe('networkOf', () => {
  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['2001:db8::1', '2001:db8:0:0:1::'],
    ['2001:DB8:1:2::1', '2001:0db8:0001:0002:0000:0000:0000:0001'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1:2:3:4:5'],
    ['::1', '::2'],
    ['fe80::1%eth0', 'fe80::2%eth1'],
  ])('is the same for %s and %s', (one, other) => {
    expect(networkOf(one)).toBe(networkOf(other));
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['2001:db8::1:2:3:4:5', '2001:db8::2:2:3:4:5'],
    ['203.0.113.9', '203.0.113.10'],
    ['::ffff:203.0.113.9', '::ffff:203.0.113.10'],
    ['::ffff:203.0.113.9', '::1'],
    ['unknown', ''],
  ])('tells %s and %s apart', (one, other) => {
    expect(networkOf(one)).not.toBe(networkOf(other));
  });
});
