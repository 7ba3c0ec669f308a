import { describe, expect, it } from '@jest/globals';
import { parseBasicCredentials } from './basic.credentials.js';

const basic = (text: string | Buffer): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('parseBasicCredentials', () => {
  it('reads client id and secret, whatever the case of the scheme', () => {
    const expected = { clientId: 'id', clientSecret: 'secret' };
    expect(parseBasicCredentials(basic('id:secret'))).toEqual(expected);
    expect(parseBasicCredentials(basic('id:secret').replace('Basic', 'bAsIc'))).toEqual(expected);
  });

  it('ends the id at the first colon and leaves the others to the secret', () => {
    expect(parseBasicCredentials(basic('id:a:b%3A'))).toEqual({
      clientId: 'id',
      clientSecret: 'a:b%3A',
    });
  });

  it('reads credentials as UTF-8', () => {
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
    ['what is not base64', 'Basic id:secret'],
    ['base64 cut short', 'Basic aWQ6c2Vjcm'],
    ['base64 with more behind it', `${basic('id:secret')} x`],
    ['no colon', basic('id')],
    ['no id', basic(':secret')],
    ['bytes that are not UTF-8', basic(Buffer.from([0x69, 0x64, 0x3a, 0xff]))],
  ])('takes %s for no credentials', (_, header) => {
    expect(parseBasicCredentials(header)).toBeUndefined();
  });
});
