import { describe, expect, it } from '@jest/globals';
import type { ApiApplication } from '../../support/api/api-client-application.js';
import { apiHarness } from '../../support/api/api-harness.js';
import { until } from '../../support/time/waiting.js';
import { json, type Script } from '../../support/api/scripted-service.js';

const SECOND = 1000;

describe('the lifetime of a token', () => {
  const harness = apiHarness();

  /** Makes a call, and returns the token that the call sent. */
  const use = async ({ payments }: ApiApplication): Promise<string> => {
    await payments.getTransaction('1');
    return harness.service.calls.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? '';
  };
  /** Waits until the token request in the background has ended, which cancels its timer. */
  const refreshed = ({ runtime }: ApiApplication): Promise<void> =>
    until(() => runtime.pending === 0, 'the end of the background refresh');
  const returnExpiresIn = (expiresIn: unknown): void => {
    const { service } = harness;
    service.onToken = (request, response) =>
      json(200, service.tokenAnswer({ expiresIn }))(request, response);
  };

  it.each([
    ['"3599"', '3599'],
    ['3599', 3599],
  ])('TK-03 a token with expires_in %s is used for at most 3,599 s', async (_, expiresIn) => {
    returnExpiresIn(expiresIn);
    const application = await harness.boot();
    expect(await use(application)).toBe('token-1');
    application.runtime.advance(3478 * SECOND);
    expect(await use(application)).toBe('token-1');
    expect(harness.service.tokenRequests).toHaveLength(1);
    application.runtime.advance(121 * SECOND);
    expect(await use(application)).toBe('token-2');
    expect(application.logs).toEqual([]);
  });

  it.each([
    ['"3599abc"', '3599abc'],
    ['missing', undefined],
  ])(
    'TK-03 a token with expires_in %s is used for 300 s, and a warning is logged',
    async (_, expiresIn) => {
      returnExpiresIn(expiresIn);
      const application = await harness.boot();
      expect(await use(application)).toBe('token-1');
      expect(application.logs).toEqual([expect.stringContaining('expires_in')]);
      application.runtime.advance(269 * SECOND);
      expect(await use(application)).toBe('token-1');
      application.runtime.advance(31 * SECOND);
      expect(await use(application)).toBe('token-2');
    },
  );

  it('TK-04 the lifetime of a token starts when its token request is sent', async () => {
    const application = await harness.boot();
    const waiting: (() => void)[] = [];
    const { service } = harness;
    service.onToken = (request, response) =>
      waiting.push(() => json(200, service.tokenAnswer({ expiresIn: '20' }))(request, response));
    const first = use(application);
    await until(() => waiting.length === 1);
    application.runtime.advance(9 * SECOND);
    waiting[0]?.();
    await first;
    returnExpiresIn('20');
    application.runtime.advance(8 * SECOND);
    expect(await use(application)).toBe('token-1');
    application.runtime.advance(2.5 * SECOND);
    expect(await use(application)).toBe('token-2');
  });

  it('TK-04 a token expires by the wall clock or by the monotonic clock, whichever is earlier', async () => {
    const application = await harness.boot();
    const { runtime } = application;
    expect(await use(application)).toBe('token-1');
    runtime.setWallClock(3600 * SECOND);
    expect(await use(application)).toBe('token-2');
    runtime.setWallClock(-7200 * SECOND);
    expect(await use(application)).toBe('token-2');
    runtime.passMonotonic(3600 * SECOND);
    expect(await use(application)).toBe('token-3');
  });

  it('TK-05 in the soft window, calls use the current token, and one background request renews the token', async () => {
    const application = await harness.boot();
    const { service } = harness;
    await use(application);
    const waiting: (() => void)[] = [];
    service.onToken = (request, response) =>
      waiting.push(() => json(200, service.tokenAnswer())(request, response));
    // 60 s are left: less than the soft window of 90 to 120 s, and more than the hard window of 30 s.
    application.runtime.advance(3539 * SECOND);
    expect(await Promise.all([use(application), use(application)])).toEqual(['token-1', 'token-1']);
    expect(await use(application)).toBe('token-1');
    await until(() => waiting.length > 0);
    expect(service.tokenRequests).toHaveLength(2);
    waiting[0]?.();
    await refreshed(application);
    expect(await use(application)).toBe('token-2');
  });

  it('TK-05 jitter makes the soft window of a token 90 to 120 s long', async () => {
    for (const [chance, leftSeconds] of [
      [0, 89],
      [0.999, 119],
    ] as const) {
      const application = await harness.boot();
      const { service } = harness;
      application.runtime.chance = chance;
      await use(application);
      const before = service.tokenRequests.length;
      application.runtime.advance((3599 - leftSeconds - 2) * SECOND);
      await use(application);
      await refreshed(application);
      expect(service.tokenRequests).toHaveLength(before);
      application.runtime.advance(3 * SECOND);
      await use(application);
      await refreshed(application);
      expect(service.tokenRequests).toHaveLength(before + 1);
    }
  });

  it('TK-05 in the hard window, or without a token, concurrent calls wait for one token request', async () => {
    const application = await harness.boot();
    expect(await Promise.all([use(application), use(application)])).toContain('token-1');
    application.runtime.advance(3570 * SECOND);
    const used = await Promise.all([use(application), use(application), use(application)]);
    expect(new Set(used)).toEqual(new Set(['token-2']));
    expect(harness.service.tokenRequests).toHaveLength(2);
  });

  it('TK-06 after a failed background request, calls use the old token, and the next token request waits for the backoff', async () => {
    const application = await harness.boot();
    const { service } = harness;
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    await use(application);
    service.onToken = json(500, {});
    application.runtime.advance(3530 * SECOND);
    for (let call = 0; call < 5; call += 1) {
      expect(await use(application)).toBe('token-1');
      await refreshed(application);
    }
    expect(service.tokenRequests).toHaveLength(2);
    application.runtime.advance(0.6 * SECOND);
    expect(await use(application)).toBe('token-1');
    await refreshed(application);
    expect(service.tokenRequests).toHaveLength(3);
    application.runtime.advance(0.6 * SECOND);
    await use(application);
    await refreshed(application);
    expect(service.tokenRequests).toHaveLength(3);
    // The old token is also used in the hard window, until it expires.
    application.runtime.advance(50 * SECOND);
    expect(await use(application)).toBe('token-1');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled).toEqual([]);
    expect(application.logs.join()).toContain('The current token is used until it expires');
  });

  it.each([
    ['with an hour as expires_in', () => '3599'],
    ['with the time left as expires_in', (left: number) => String(Math.floor(left / SECOND))],
  ])(
    'TK-07 a token endpoint that returns the same token %s gets few requests until the token expires',
    async (_, expiresIn) => {
      const application = await harness.boot();
      const { service } = harness;
      const { runtime } = application;
      const began = runtime.monotonic();
      const sameToken: Script = (request, response) => {
        const age = runtime.monotonic() - began;
        const left = 3599 * SECOND - (age % (3599 * SECOND));
        const token = `token-of-hour-${Math.floor(age / (3599 * SECOND))}`;
        json(200, service.tokenAnswer({ token, expiresIn: expiresIn(left) }))(request, response);
      };
      service.onToken = sameToken;
      await use(application);
      runtime.advance(3470 * SECOND);
      // Two calls per second, in the last two minutes of an hour and the first minute of the next hour.
      for (let call = 0; call < 380; call += 1) {
        const hour = Math.floor((runtime.monotonic() - began) / (3599 * SECOND));
        service.acceptOnly(`token-of-hour-${hour}`);
        expect(await use(application)).toBe(`token-of-hour-${hour}`);
        await refreshed(application);
        runtime.advance(0.5 * SECOND);
      }
      expect(service.tokenRequests.length).toBeLessThan(16);
    },
  );

  it('TK-17 a token with a lifetime of 20 seconds is not fetched on every call', async () => {
    returnExpiresIn('20');
    const application = await harness.boot();
    for (let call = 0; call < 120; call += 1) {
      await use(application);
      await refreshed(application);
      application.runtime.advance(0.5 * SECOND);
    }
    // One minute needs 3 to 4 tokens, because each token is used for 18 to 20 s.
    expect(harness.service.tokenRequests.length).toBeGreaterThanOrEqual(3);
    expect(harness.service.tokenRequests.length).toBeLessThanOrEqual(4);
  });
});
