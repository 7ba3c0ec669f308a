import { describe, expect, it } from '@jest/globals';
import { parseBasicCredentials } from './basic-credentials.js';

const basic = (text: string | Buffer): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('parseBasicCredentials', () => {
  it('parseBasicCredentials() reads client id and secret; the scheme is case-insensitive', () => {
    const expected = { clientId: 'id', clientSecret: 'secret' };
    expect(parseBasicCredentials(basic('id:secret'))).toEqual(expected);
    expect(parseBasicCredentials(basic('id:secret').replace('Basic', 'bAsIc'))).toEqual(expected);
  });

  it('parseBasicCredentials() splits at the first colon; the secret may contain more colons', () => {
    expect(parseBasicCredentials(basic('id:a:b%3A'))).toEqual({
      clientId: 'id',
      clientSecret: 'a:b%3A',
    });
  });

  it('parseBasicCredentials() reads credentials as UTF-8', () => {
    expect(parseBasicCredentials(basic('café:пароль'))).toEqual({
      clientId: 'café',
      clientSecret: 'пароль',
    });
  });

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another scheme', 'Bearer aWQ6c2VjcmV0'],
    ['no credentials', 'Basic '],
    ['credentials that are not base64', 'Basic id:secret'],
    ['truncated base64', 'Basic aWQ6c2Vjcm'],
    ['text after the base64', `${basic('id:secret')} x`],
    ['no colon', basic('id')],
    ['no id', basic(':secret')],
    ['bytes that are not UTF-8', basic(Buffer.from([0x69, 0x64, 0x3a, 0xff]))],
  ])('parseBasicCredentials() returns undefined for %s', (_, header) => {
    expect(parseBasicCredentials(header)).toBeUndefined();
  });
});
