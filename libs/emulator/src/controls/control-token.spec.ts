import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../clock/manual.clock.js';
import { ControlToken } from './control-token.js';

const TOKEN = 'a:token-of-the-test';
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('ControlToken', () => {
  it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, basic(`any:${TOKEN}`), basic(`:${TOKEN}`)])(
    'takes %s',
    (header) => {
      expect(new ControlToken(TOKEN, new ManualClock(0)).prove(header)).toBe('right');
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
  ])('calls %s %s', (header, proof) => {
    expect(new ControlToken(TOKEN, new ManualClock(0)).prove(header)).toBe(proof);
  });

  it('throttles more than ten wrong ones within a minute, and never the right one', () => {
    const clock = new ManualClock(0);
    const token = new ControlToken(TOKEN, clock);
    clock.advance(100_000);
    const proofs = Array.from({ length: 12 }, () => token.prove('Bearer wrong'));
    expect(proofs).toEqual([...Array<string>(10).fill('wrong'), 'throttled', 'throttled']);
    expect(token.prove(`Bearer ${TOKEN}`)).toBe('right');
    clock.advance(60_000);
    expect(token.prove('Bearer wrong')).toBe('wrong');
  });
});
