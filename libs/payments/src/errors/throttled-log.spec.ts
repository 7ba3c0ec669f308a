import { beforeEach, describe, expect, it } from '@jest/globals';
import { ModuleRuntime } from '../runtime/payments-runtime.js';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { ThrottledLog } from './module-log.js';

describe('ThrottledLog', () => {
  let runtime: FakeRuntime;
  let module: ModuleRuntime;
  let lines: string[] = [];
  let log: ThrottledLog;
  const logger = {
    warn: (line: unknown) => void lines.push(String(line)),
    error: (line: unknown) => void lines.push(`error: ${String(line)}`),
  };
  beforeEach(() => {
    runtime = new FakeRuntime();
    module = new ModuleRuntime(runtime);
    lines = [];
    log = new ThrottledLog(logger, module);
  });

  it('ThrottledLog logs one line per subject and minute, with the number of suppressed lines', () => {
    for (let count = 0; count < 1001; count += 1) log.warn('a', `A failed ${count}.`);
    log.warn('b', 'B failed.');
    expect(lines).toEqual(['A failed 0.', 'B failed.']);
    runtime.advance(59_999);
    expect(lines).toHaveLength(2);
    runtime.advance(1);
    expect(lines.slice(2)).toEqual(['A failed 1000. (999 more since the previous line)']);
    log.warn('a', 'A failed again.');
    expect(lines).toHaveLength(3);
    runtime.advance(60_000);
    expect(lines.slice(3)).toEqual(['A failed again.']);
    runtime.advance(3_600_000);
    expect([lines.length, runtime.pending]).toEqual([4, 0]);
    log.warn('a', 'A failed.');
    expect(lines[4]).toBe('A failed.');
  });

  it('ThrottledLog logs one line about the suppressed lines of all subjects', () => {
    for (let index = 0; index < 12; index += 1) {
      for (let count = 0; count <= index + 1; count += 1) log.warn(`a ${index}`, 'Failed.');
      runtime.advance(1000);
    }
    lines = [];
    runtime.advance(120_000);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^Lines were suppressed since the previous ones: 12 about "a 11", .*, 3 about "a 2", others about 2 more subjects\.$/,
    );
    for (const level of ['warn', 'error', 'warn', 'error'] as const) log[level](level, 'Failed.');
    runtime.advance(60_000);
    expect(lines.at(-1)).toMatch(/^error: Lines .*: 1 about "warn", 1 about "error"\.$/);
    expect(runtime.pending).toBe(0);
  });

  it('ThrottledLog reports suppressed lines with the next line, if this line is logged before a delayed timer fires', () => {
    const timers: (() => void)[] = [];
    let now = 0;
    log = new ThrottledLog(logger, {
      monotonic: () => now,
      schedule: (_, callback) => {
        timers.push(callback);
        return () => {};
      },
    });
    for (let count = 0; count < 3; count += 1) log.warn('a', 'A failed.');
    now = 60_000;
    log.warn('a', 'A failed.');
    for (const timer of timers) timer();
    expect(lines).toEqual(['A failed.', 'A failed. (2 more since the previous line)']);
  });

  it('ThrottledLog logs the number of suppressed lines when the application closes, and leaves no timer', () => {
    for (let count = 0; count < 40; count += 1) log.warn('a', 'A failed.');
    log.warn('b', 'B failed.');
    expect(runtime.pending).toBe(1);
    module.close();
    expect(lines.slice(2)).toEqual(['A failed. (38 more since the previous line)']);
    expect(runtime.pending).toBe(0);
  });

  it('ThrottledLog ignores an error that a message function throws when a timer fires', () => {
    log.warn('a', 'A failed.');
    log.warn('a', () => {
      throw new Error('full disk');
    });
    expect(() => runtime.advance(60_000)).not.toThrow();
  });

  it('ThrottledLog.error() logs at the level error, and errors and warnings about one subject share one line per minute', () => {
    log.error('a', 'A failed.');
    log.warn('a', 'A failed.');
    log.error('a', 'A failed.');
    expect(lines).toEqual(['error: A failed.']);
  });

  it('ThrottledLog calls a message function only if the line is logged', () => {
    let made = 0;
    const message = (): string => `made ${(made += 1)}`;
    for (let count = 0; count < 3; count += 1) log.warn('a', message);
    expect([made, lines]).toEqual([1, ['made 1']]);
    runtime.advance(60_000);
    expect(lines.slice(1)).toEqual(['made 2 (1 more since the previous line)']);
  });

  it('ThrottledLog logs at most 101 lines per minute for any number of subjects, and deletes old subjects', () => {
    for (let minute = 0; minute < 3; minute += 1) {
      lines = [];
      for (let index = 0; index < 1000; index += 1) log.warn(`${minute} ${index}`, 'Failed.');
      expect(lines.length).toBeGreaterThanOrEqual(100);
      expect(lines.length).toBeLessThanOrEqual(101);
      expect(runtime.pending).toBe(1);
      runtime.advance(120_000);
    }
  });
});
