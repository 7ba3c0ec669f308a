import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../runtime/manual-clock.js';
import { ControlToken } from './control-token.js';

const TOKEN = 'a:token-of-the-test';
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('ControlToken', () => {
  it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, basic(`any:${TOKEN}`), basic(`:${TOKEN}`)])(
    'ControlToken accepts the header %s',
    (header) => {
      expect(new ControlToken(TOKEN, new ManualClock(0)).verify(header)).toBe('valid');
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
    expect(new ControlToken(TOKEN, new ManualClock(0)).verify(header)).toBe(result);
  });

  it('ControlToken throttles wrong tokens after ten wrong tokens within a minute, and never throttles the valid token', () => {
    const clock = new ManualClock(0);
    const token = new ControlToken(TOKEN, clock);
    clock.advance(100_000);
    const results = Array.from({ length: 12 }, () => token.verify('Bearer wrong'));
    expect(results).toEqual([...Array<string>(10).fill('wrong'), 'throttled', 'throttled']);
    expect(token.verify(`Bearer ${TOKEN}`)).toBe('valid');
    clock.advance(60_000);
    expect(token.verify('Bearer wrong')).toBe('wrong');
  });
});
