import { expect, it } from '@jest/globals';
import type { ApiApplication } from '../support/api/api-application.js';
import { describeWithEachAdapter } from '../support/api/api-harness.js';
import { until } from '../support/time/waiting.js';
import { json, type Script } from '../support/api/scripted-service.js';

const SECOND = 1000;

describeWithEachAdapter('the lifetime of a token', (harness) => {
  /** Makes a call, and gives the token it was made with. */
  const use = async ({ payments }: ApiApplication): Promise<string> => {
    await payments.getTransaction('1');
    return harness.service.calls.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? '';
  };
  /** Waits until a token request in the background is done: the timer it had is gone. */
  const settled = ({ runtime }: ApiApplication): Promise<void> =>
    until(() => runtime.pending === 0, 'the end of the background refresh');
  const giveFor = (expiresIn: unknown): void => {
    const { service } = harness;
    service.onToken = (request, response) =>
      json(200, service.tokenAnswer({ expiresIn }))(request, response);
  };

  it.each([
    ['"3599"', '3599'],
    ['3599', 3599],
  ])('TK-03 expires_in %s is an hour less a second', async (_, expiresIn) => {
    giveFor(expiresIn);
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
    ['""', ''],
    ['-1', -1],
    ['1e308', 1e308],
    ['"NaN"', 'NaN'],
    ['missing', undefined],
    ['null', null],
    ['0', '0'],
    ['1.5', 1.5],
  ])(
    'TK-03 expires_in %s is a short safe lifetime of 300 s and a warning',
    async (_, expiresIn) => {
      giveFor(expiresIn);
      const application = await harness.boot();
      expect(await use(application)).toBe('token-1');
      expect(application.logs).toEqual([expect.stringContaining('expires_in')]);
      application.runtime.advance(269 * SECOND);
      expect(await use(application)).toBe('token-1');
      application.runtime.advance(31 * SECOND);
      expect(await use(application)).toBe('token-2');
    },
  );

  it('TK-04 the lifetime counts from when the request was sent', async () => {
    const application = await harness.boot();
    const held: (() => void)[] = [];
    const { service } = harness;
    service.onToken = (request, response) =>
      held.push(() => json(200, service.tokenAnswer({ expiresIn: '20' }))(request, response));
    const first = use(application);
    await until(() => held.length === 1);
    application.runtime.advance(9 * SECOND);
    held[0]?.();
    await first;
    giveFor('20');
    application.runtime.advance(8 * SECOND);
    expect(await use(application)).toBe('token-1');
    application.runtime.advance(2.5 * SECOND);
    expect(await use(application)).toBe('token-2');
  });

  it('TK-04 a token is expired when either the wall clock or the monotonic clock says so', async () => {
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

  it('TK-05 in the soft window the current token is returned at once and one refresh runs in the background', async () => {
    const application = await harness.boot();
    const { service } = harness;
    await use(application);
    const held: (() => void)[] = [];
    service.onToken = (request, response) =>
      held.push(() => json(200, service.tokenAnswer())(request, response));
    // 60 s are left: under 90 to 120 s, which the soft window's jitter gives, and over the 30 s of the hard one.
    application.runtime.advance(3539 * SECOND);
    expect(await Promise.all([use(application), use(application)])).toEqual(['token-1', 'token-1']);
    expect(await use(application)).toBe('token-1');
    await until(() => held.length > 0);
    expect(service.tokenRequests).toHaveLength(2);
    held[0]?.();
    await settled(application);
    expect(await use(application)).toBe('token-2');
  });

  it('TK-05 the soft window is jittered', async () => {
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
      await settled(application);
      expect(service.tokenRequests).toHaveLength(before);
      application.runtime.advance(3 * SECOND);
      await use(application);
      await settled(application);
      expect(service.tokenRequests).toHaveLength(before + 1);
    }
  });

  it('TK-05 in the hard window, or without a token, callers wait for the shared refresh', async () => {
    const application = await harness.boot();
    expect(await Promise.all([use(application), use(application)])).toContain('token-1');
    application.runtime.advance(3570 * SECOND);
    const used = await Promise.all([use(application), use(application), use(application)]);
    expect(new Set(used)).toEqual(new Set(['token-2']));
    expect(harness.service.tokenRequests).toHaveLength(2);
  });

  it('TK-06 after a failed background refresh the old token is still used, and the next refresh backs off', async () => {
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
      await settled(application);
    }
    expect(service.tokenRequests).toHaveLength(2);
    application.runtime.advance(0.6 * SECOND);
    expect(await use(application)).toBe('token-1');
    await settled(application);
    expect(service.tokenRequests).toHaveLength(3);
    application.runtime.advance(0.6 * SECOND);
    await use(application);
    await settled(application);
    expect(service.tokenRequests).toHaveLength(3);
    // Also in the hard window, until the token expires.
    application.runtime.advance(50 * SECOND);
    expect(await use(application)).toBe('token-1');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled).toEqual([]);
    expect(application.logs.join()).toContain('the current one is still used');
  });

  it.each([
    ['always says an hour', () => '3599'],
    ['says what is left', (left: number) => String(Math.floor(left / SECOND))],
  ])(
    'TK-07 a token endpoint that returns the same token until it expires, and %s, is not asked at every call',
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
      // Two calls a second, for the last two minutes and the first of the next hour.
      for (let call = 0; call < 380; call += 1) {
        const hour = Math.floor((runtime.monotonic() - began) / (3599 * SECOND));
        service.acceptOnly(`token-of-hour-${hour}`);
        expect(await use(application)).toBe(`token-of-hour-${hour}`);
        await settled(application);
        runtime.advance(0.5 * SECOND);
      }
      expect(service.tokenRequests.length).toBeLessThan(16);
    },
  );

  it('TK-17 a token with a lifetime of 20 seconds is not fetched on every call', async () => {
    giveFor('20');
    const application = await harness.boot();
    for (let call = 0; call < 120; call += 1) {
      await use(application);
      await settled(application);
      application.runtime.advance(0.5 * SECOND);
    }
    // A minute, at 18 to 20 seconds a token.
    expect(harness.service.tokenRequests.length).toBeGreaterThanOrEqual(3);
    expect(harness.service.tokenRequests.length).toBeLessThanOrEqual(4);
  });
});
