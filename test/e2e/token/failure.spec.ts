import { describe, expect, it } from '@jest/globals';
import { apiHarness, describeWithEachAdapter } from '../../support/api/api-harness.js';
import { until } from '../../support/time/waiting.js';
import { hangUp, json, silence } from '../../support/api/scripted-service.js';

const SECOND = 1000;

describe('calls while the token endpoint fails', () => {
  const harness = apiHarness();

  it('TK-08 the first call after the backoff gets a token, because the module does not cache a rejected promise', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    const works = service.onToken;
    service.onToken = hangUp;
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'token_unavailable' });
    service.onToken = works;
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'token_unavailable' });
    expect(service.tokenRequests).toHaveLength(1);
    runtime.advance(500);
    await expect(payments.getTransaction('1')).resolves.toEqual({ status: 'complete' });
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-09 calls fail fast with token_unavailable during a backoff of 0.5 s to 30 s', async () => {
    const { service } = harness;
    service.onToken = json(503, {});
    const { payments, runtime } = await harness.boot();
    const waits: number[] = [];
    for (let outage = 1; outage <= 9; outage += 1) {
      const calls = Array.from({ length: 20 }, () => payments.getTransaction('1'));
      for (const result of await Promise.allSettled(calls)) {
        expect(result).toMatchObject({ reason: { code: 'token_unavailable', status: 503 } });
      }
      expect(service.tokenRequests).toHaveLength(outage);
      const error = await payments.getTransaction('1').catch((error: unknown) => error);
      const { retryAfterMs } = error as { retryAfterMs: number };
      waits.push(retryAfterMs);
      runtime.advance(retryAfterMs - 1);
      await payments.getTransaction('1').catch(() => {});
      expect(service.tokenRequests).toHaveLength(outage);
      runtime.advance(1);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    expect(service.calls).toHaveLength(0);
  });

  it('TK-09 the backoff is 0.5 s again after a successful token request', async () => {
    const { service } = harness;
    const works = service.onToken;
    const { payments, runtime } = await harness.boot();
    const failure = async (): Promise<number> => {
      service.onToken = json(503, {});
      const error = await payments.getTransaction('1').catch((error: unknown) => error);
      return (error as { retryAfterMs: number }).retryAfterMs;
    };
    for (const wait of [500, 1000, 2000, 4000]) {
      expect(await failure()).toBe(wait);
      runtime.advance(wait);
    }
    service.onToken = works;
    await payments.getTransaction('1');
    // The token expires.
    runtime.advance(3600 * SECOND);
    expect(await failure()).toBe(500);
  });

  it('TK-09 a Retry-After delays the next token request', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    service.onToken = json(429, {}, { 'retry-after': '60' });
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ retryAfterMs: 60_000 });
    runtime.advance(59 * SECOND);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ retryAfterMs: 1_000 });
    expect(service.tokenRequests).toHaveLength(1);
    runtime.advance(SECOND);
    await payments.getTransaction('1').catch(() => {});
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-09 after a 401 for wrong credentials, calls reject with invalid_credentials and send no token request for 30 s', async () => {
    const { service } = harness;
    service.onToken = json(401, { error: 'no' });
    const { payments, runtime } = await harness.boot();
    const rejected = { code: 'invalid_credentials', status: 401, company: 'default' };
    await expect(payments.getTransaction('1')).rejects.toMatchObject(rejected);
    runtime.advance(29 * SECOND);
    await expect(payments.getTransaction('1')).rejects.toMatchObject(rejected);
    expect(service.tokenRequests).toHaveLength(1);
    runtime.advance(SECOND);
    await expect(payments.getTransaction('1')).rejects.toThrow(/clientId and clientSecret/);
    expect(service.tokenRequests).toHaveLength(2);
    runtime.advance(29 * SECOND);
    await expect(payments.getTransaction('1')).rejects.toMatchObject(rejected);
    expect(service.tokenRequests).toHaveLength(2);
  });

  it.each([
    ['is not JSON', (): unknown => 'hello'],
    ['is null', () => null],
    ['has no access_token', () => ({ expires_in: '3599' })],
    [
      'has an access_token with a line break',
      () => ({ access_token: 'a\r\nx: y', expires_in: '1' }),
    ],
  ])('TK-09 a token response that %s causes token_unavailable', async (_, body) => {
    harness.service.onToken = json(200, body());
    const { payments } = await harness.boot();
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'token_unavailable' });
    expect(harness.service.calls).toHaveLength(0);
  });

  it.each([404, 405])(
    'TK-09 a token response with the status %i causes token_unavailable with the advice to check the base URL',
    async (status) => {
      harness.service.onToken = json(status, {});
      const { payments } = await harness.boot();
      const call = payments.getTransaction('1');
      await expect(call).rejects.toMatchObject({ code: 'token_unavailable', status });
      await expect(call).rejects.toThrow(
        /responded with 40\d to POST \/v1\/auth\/token: .*base URL/,
      );
    },
  );

  it('TK-12 the result of a token request is discarded if a newer token request has already started', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    await payments.getTransaction('1');
    // The token in use is revoked while a background refresh waits for its response.
    const waiting: (() => void)[] = [];
    service.onToken = (request, response) =>
      waiting.push(() => json(200, service.tokenAnswer({ token: 'late' }))(request, response));
    runtime.advance(3540 * SECOND);
    await payments.getTransaction('1');
    await until(() => waiting.length === 1);
    service.onToken = (request, response) =>
      waiting.push(() => json(200, service.tokenAnswer({ token: 'fresh' }))(request, response));
    service.acceptOnly('fresh');
    const revoked = payments.getTransaction('1');
    await until(() => waiting.length === 2);
    // The aborted background refresh must not fail a call that waits for the newer token request.
    const other = payments.getTransaction('1');
    for (const respond of waiting) respond();
    await Promise.all([revoked, other]);
    await payments.getTransaction('1');
    expect(service.calls.at(-1)?.headers.authorization).toBe('Bearer fresh');
    expect(service.calls.map(({ headers }) => headers.authorization)).not.toContain('Bearer late');
    expect(service.tokenRequests).toHaveLength(3);
  });

  it('TK-13 an aborted caller stops waiting, and other callers still get the token', async () => {
    const { service } = harness;
    const waiting: (() => void)[] = [];
    const respond = service.onToken;
    service.onToken = (request, response) => waiting.push(() => respond(request, response));
    const { payments } = await harness.boot();
    const controller = new AbortController();
    const aborted = payments.getTransaction('1', { signal: controller.signal });
    const other = payments.getTransaction('1');
    await until(() => waiting.length === 1);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'aborted', attempts: 0 });
    waiting[0]?.();
    await expect(other).resolves.toEqual({ status: 'complete' });
    expect(service.tokenRequests).toHaveLength(1);
  });
});

describeWithEachAdapter('connections to the token endpoint', (harness) => {
  it('TK-09 a redirect causes token_unavailable, and the credentials are not sent to its location', async () => {
    harness.service.onToken = (_, response) =>
      response.writeHead(307, { location: `${harness.service.baseUrl}/elsewhere` }).end();
    const { payments } = await harness.boot();
    await expect(payments.getTransaction('1')).rejects.toThrow(/307.*redirect/);
    expect(harness.service.calls).toHaveLength(0);
  });

  it('TK-14 a token request ends after tokenTimeoutMs', async () => {
    const { service } = harness;
    const works = service.onToken;
    service.onToken = silence;
    const { payments, runtime } = await harness.boot({ tokenTimeoutMs: 3_000 });
    const call = payments.getTransaction('1');
    const ended = expect(call).rejects.toThrow(/did not respond within 3000 ms/);
    await until(() => service.tokenRequests.length === 1);
    runtime.advance(3_000);
    await ended;
    service.onToken = works;
    runtime.advance(500);
    await expect(payments.getTransaction('1')).resolves.toBeDefined();
  });

  it('TK-14 a token request is sent while calls use all connections', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot({ maxSockets: 1, attemptTimeoutMs: 300_000 });
    await payments.getTransaction('1');
    service.onCall = silence;
    const stuck = Promise.allSettled(Array.from({ length: 5 }, () => payments.getTransaction('1')));
    await until(() => service.calls.length === 2);
    runtime.setWallClock(3600 * SECOND);
    const behind = payments.getTransaction('1').catch(() => {});
    await until(() => service.tokenRequests.length === 2, 'the token request');
    runtime.advance(20_000);
    await Promise.all([stuck, behind]);
  });
});
