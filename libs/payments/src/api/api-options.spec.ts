import { Agent } from 'node:http';
import { inspect } from 'node:util';
import { afterAll, describe, expect, it } from '@jest/globals';
import { Agent as UndiciAgent } from 'undici';
import { resolveApiOptions } from './api-options.js';

describe('resolveApiOptions', () => {
  const dispatcher = new UndiciAgent();
  afterAll(() => dispatcher.close());

  it('resolveApiOptions() returns frozen defaults for no options', () => {
    const options = resolveApiOptions();
    expect(options).toEqual({
      adapter: 'undici',
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
    });
    expect(options.agents).toEqual({});
    for (const part of [options, options.retry, options.retry.statuses, options.agents]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('resolveApiOptions() uses the default for an option that is undefined', () => {
    const given = { deadlineMs: undefined, retry: undefined, agents: undefined } as object;
    expect(resolveApiOptions(given)).toEqual(resolveApiOptions());
  });

  it.each([
    ['deadlineMs', 0, /"api.deadlineMs".*milliseconds from 1 to 600000; it is 0.*20000/],
    ['deadlineMs', Infinity, /whole number of milliseconds/],
    ['deadlineMs', NaN, /whole number/],
    ['attemptTimeoutMs', '10', /attemptTimeoutMs".*it is a text of 2 characters/],
    ['attemptTimeoutMs', 1.5, /attemptTimeoutMs".*it is 1.5/],
    ['tokenTimeoutMs', 120_001, /1 to 120000/],
    ['maxResponseBytes', -1, /bytes/],
    ['maxSockets', null, /maxSockets".*of sockets.*it is null/],
    [
      'tokenHeader',
      'Authorization',
      /must be 'authorization' \(default\) or 'x-auth-token'; it is a text of 13 characters/,
    ],
    ['retry', 3, /policy object, or false/],
    ['retry', { attempts: 0 }, /"api\.retry\.attempts".*1 to 10; it is 0/],
    ['retry', { statuses: [200] }, /retry\.statuses.*400 to 599 and '5xx'; it is an array\.$/],
    ['retry', { statuses: '5xx' }, /retry\.statuses.*it is a text of 3 characters/],
    ['retry', { retries: 3 }, /no option "api\.retry\.retries". The options are attempts/],
    ['tokenHeader', 5, /'x-auth-token'; it is 5\./],
    ['agents', 'proxy', /agents/],
    ['agents', { http: 'proxy' }, /agents\.http/],
    ['agents', { proxy: new Agent() }, /no option "api\.agents\.proxy"/],
    [
      'adapter',
      'axios',
      /"api\.adapter" must be 'undici' \(default\), 'http' or 'fetch'; it is a text of 5 characters/,
    ],
    ['adapter', 5, /"api\.adapter" must be .*; it is 5/],
    ['dispatcher', {}, /"api\.dispatcher" must be a dispatcher of undici/],
    ['timeout', 5, /no option "api\.timeout". The options are .*deadlineMs/],
  ])(
    'resolveApiOptions() rejects the option %s with the value %p, and describes the fix',
    (name, value, message) => {
      const resolve = (): unknown => resolveApiOptions({ [name]: value });
      expect(resolve).toThrow(message);
      expect(resolve).toThrow(expect.objectContaining({ code: 'options_invalid' }));
    },
  );

  it.each([
    [{}, 'undici'],
    [{ adapter: 'fetch' as const }, 'fetch'],
    [{ agents: { http: new Agent() } }, 'http'],
    [{ adapter: 'http' as const, agents: { http: new Agent() } }, 'http'],
    [{ dispatcher }, 'undici'],
  ])(
    'HT-31 resolveApiOptions() selects the adapter from the options adapter, agents and dispatcher (case %#)',
    (given, adapter) => {
      expect(resolveApiOptions(given).adapter).toBe(adapter);
    },
  );

  it.each([
    [
      { agents: {}, adapter: 'undici' as const },
      /"api\.agents" are for node:http, and .* is 'undici'\. Set "api\.adapter" to 'http', or leave it out/,
    ],
    [
      { agents: {}, adapter: 'fetch' as const },
      /"api\.agents" are for node:http, and .* is 'fetch'/,
    ],
    [
      { dispatcher, adapter: 'http' as const },
      /"api\.dispatcher" is for undici, and .* is 'http'\. Set "api\.adapter" to 'undici'/,
    ],
    [
      { dispatcher, adapter: 'fetch' as const },
      /"api\.dispatcher" is for undici, and .* is 'fetch'/,
    ],
    [{ dispatcher, agents: {} }, /only one of the two options/],
  ])(
    'HT-31 resolveApiOptions() rejects agents and dispatchers that do not fit the selected adapter (case %#)',
    (given, message) => {
      expect(() => resolveApiOptions(given)).toThrow(message);
    },
  );

  it.each([null, 'fast', 5])(
    'resolveApiOptions() rejects %p in place of the options object',
    (input) => {
      expect(() => resolveApiOptions(input as never)).toThrow(/"api" must be an object of options/);
    },
  );

  it('TK-18 resolveApiOptions() hides agents and dispatcher in logs, because their sockets contain headers', () => {
    for (const given of [{ agents: { http: new Agent() } }, { dispatcher }]) {
      const options = resolveApiOptions(given);
      expect(options).toMatchObject(given);
      expect(inspect(options, { depth: Infinity })).not.toMatch(/agents|dispatcher|_events/);
      expect(JSON.stringify(options)).not.toMatch(/agents|dispatcher/);
    }
  });
});
