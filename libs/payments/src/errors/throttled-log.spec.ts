import { beforeEach, describe, expect, it } from '@jest/globals';
import { ThrottledLog } from './throttled-log.js';

describe('ThrottledLog', () => {
  let now = 0;
  let lines: string[] = [];
  let log: ThrottledLog;
  beforeEach(() => {
    now = 0;
    lines = [];
    const logger = {
      warn: (line: unknown) => void lines.push(String(line)),
      error: (line: unknown) => void lines.push(`error: ${String(line)}`),
    };
    log = new ThrottledLog(logger, { monotonic: () => now });
  });

  it('ThrottledLog logs one line per subject and minute, with the number of suppressed lines', () => {
    for (let count = 0; count < 1001; count += 1) log.warn('a', 'A failed.');
    log.warn('b', 'B failed.');
    expect(lines).toEqual(['A failed.', 'B failed.']);
    now = 59_999;
    log.warn('a', 'A failed.');
    expect(lines).toHaveLength(2);
    now = 60_000;
    log.warn('a', 'A failed.');
    expect(lines[2]).toBe('A failed. (1001 more since the previous line)');
    now = 120_000;
    log.warn('a', 'A failed.');
    expect(lines[3]).toBe('A failed.');
  });

  it('ThrottledLog logs error() at the level error, and at most one line per subject of both levels', () => {
    log.error('a', 'A failed.');
    log.warn('a', 'A failed.');
    log.error('a', 'A failed.');
    expect(lines).toEqual(['error: A failed.']);
  });

  it('ThrottledLog calls a message function only if the line is logged', () => {
    let made = 0;
    const message = (): string => `made ${(made += 1)}`;
    log.warn('a', message);
    log.warn('a', message);
    expect([made, lines]).toEqual([1, ['made 1']]);
  });

  it('ThrottledLog logs at most 101 lines per minute for any number of subjects, and forgets old subjects', () => {
    for (let minute = 0; minute < 3; minute += 1) {
      now = minute * 60_000;
      lines = [];
      for (let index = 0; index < 1000; index += 1) log.warn(`${minute} ${index}`, 'Failed.');
      expect(lines.length).toBeGreaterThanOrEqual(100);
      expect(lines.length).toBeLessThanOrEqual(101);
    }
  });
});
