import { Agent } from 'node:http';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { resolveApiOptions } from './api.options.js';

describe('resolveApiOptions', () => {
  it('completes nothing at all into frozen defaults', () => {
    const options = resolveApiOptions();
    expect(options).toEqual({
      tokenHeader: 'authorization',
      attemptTimeoutMs: 10_000,
      deadlineMs: 20_000,
      tokenTimeoutMs: 10_000,
      maxResponseBytes: 5_242_880,
      retry: {
        attempts: 3,
        statuses: [408, 429, '5xx'],
        baseDelayMs: 200,
        maxDelayMs: 5_000,
        maxRetryAfterMs: 15_000,
      },
      maxSockets: 64,
      maxCompanies: 10_000,
      requestIdHeader: 'x-request-id',
      idempotencyHeader: undefined,
      userAgent: 'nestjs-payments',
      onRequest: undefined,
      logger: undefined,
    });
    expect(options.agents).toEqual({});
    for (const part of [options, options.retry, options.retry.statuses, options.agents]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('takes an undefined option for one that was left out', () => {
    const given = { deadlineMs: undefined, retry: undefined, agents: undefined } as object;
    expect(resolveApiOptions(given)).toEqual(resolveApiOptions());
  });

  it.each([
    ['deadlineMs', 0, /"api.deadlineMs".*milliseconds from 1 to 600000; it is 0.*20000/],
    ['deadlineMs', Infinity, /whole number of milliseconds/],
    ['deadlineMs', NaN, /whole number/],
    ['attemptTimeoutMs', '10', /attemptTimeoutMs".*it is a string/],
    ['attemptTimeoutMs', 1.5, /attemptTimeoutMs".*it is 1.5/],
    ['tokenTimeoutMs', 120_001, /1 to 120000/],
    ['maxResponseBytes', -1, /bytes/],
    ['maxSockets', null, /maxSockets".*of sockets.*it is null/],
    ['tokenHeader', 'Authorization', /'authorization' \(default\) or 'x-auth-token'/],
    ['retry', 3, /policy object, or false/],
    ['retry', { attempts: 0 }, /"api\.retry\.attempts".*1 to 10; it is 0/],
    ['retry', { statuses: [200] }, /retry\.statuses.*400 to 599/],
    ['retry', { statuses: '5xx' }, /retry\.statuses/],
    ['retry', { retries: 3 }, /no option "api\.retry\.retries". The options are attempts/],
    ['userAgent', 'a\r\nb', /printable ASCII/],
    ['requestIdHeader', 'a b', /name of an HTTP header/],
    ['idempotencyHeader', '', /name of an HTTP header/],
    ['onRequest', 'log', /"api\.onRequest" is a string; give a function/],
    ['logger', {}, /"api\.logger" has no warn\(\)/],
    ['agents', 'proxy', /agents/],
    ['agents', { http: 'proxy' }, /agents\.http/],
    ['agents', { proxy: new Agent() }, /no option "api\.agents\.proxy"/],
    ['timeout', 5, /no option "api\.timeout". The options are .*deadlineMs/],
  ])('refuses %s %p, and says how to mend it', (name, value, message) => {
    const resolve = (): unknown => resolveApiOptions({ [name]: value });
    expect(resolve).toThrow(message);
    expect(resolve).toThrow(expect.objectContaining({ code: 'options_invalid' }));
  });

  it.each([null, 'fast', 5])('refuses %p for the options as a whole', (input) => {
    expect(() => resolveApiOptions(input as never)).toThrow(/"api" is/);
  });

  it('does not show agents, whose sockets hold headers', () => {
    const options = resolveApiOptions({ agents: { http: new Agent() } });
    expect(options.agents.http).toBeInstanceOf(Agent);
    expect(inspect(options, { depth: Infinity })).not.toMatch(/agents|_events/);
    expect(JSON.stringify(options)).not.toContain('agents');
  });
});
