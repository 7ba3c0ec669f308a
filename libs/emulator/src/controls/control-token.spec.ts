import { describe, expect, it } from '@jest/globals';
import { ControlToken } from './control-token.js';

const TOKEN = 'a:token-of-the-test';
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('ControlToken', () => {
  it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, basic(`any:${TOKEN}`), basic(`:${TOKEN}`)])(
    'ControlToken accepts the header %s',
    (header) => {
      expect(new ControlToken(TOKEN).verify(header)).toBe('valid');
    },
  );

  it.each([
    [undefined, 'missing'],
    ['', 'missing'],
    [TOKEN, 'missing'],
    [basic('no-colon'), 'missing'],
    ['Bearer another', 'wrong'],
    [`Bearer ${TOKEN}x`, 'wrong'],
    [basic(`${TOKEN}:`), 'wrong'],
  ])('ControlToken reports the header %s as %s', (header, result) => {
    expect(new ControlToken(TOKEN).verify(header)).toBe(result);
  });
});
