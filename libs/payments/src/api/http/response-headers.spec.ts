import { describe, expect, it } from '@jest/globals';
import { parseRetryAfterMs } from './response-headers.js';

const NOW = Date.UTC(2026, 0, 1, 12);

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    [' 120 ', 120_000],
    ['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
    ['Thursday, 01-Jan-26 12:00:30 GMT', 30_000],
    ['Thu, 01 Jan 2026 11:00:00 GMT', 0],
  ])('%p is read', (header, ms) => {
    expect(parseRetryAfterMs(header, NOW)).toBe(ms);
  });

  it.each([undefined, '', '-5', '1.5', '1e3', '2026-01-01', 'soon', '9'.repeat(30)])(
    '%p makes no sense',
    (header) => {
      expect(parseRetryAfterMs(header, NOW)).toBeUndefined();
    },
  );
});
