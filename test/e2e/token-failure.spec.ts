import { expect, it } from '@jest/globals';
import { describeWithEachAdapter } from '../support/api/api-harness.js';
import { until } from '../support/time/waiting.js';
import { hangUp, json, silence } from '../support/api/scripted-service.js';

const SECOND = 1000;

describeWithEachAdapter('a failing token endpoint', (harness) => {
  it('TK-08 recovers: the first call after the backoff gets a token, and no rejected promise is kept', async () => {
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

  it('TK-09 is down: callers fail fast with token_unavailable during a backoff of 0.5 s to 30 s', async () => {
    const { service } = harness;
    service.onToken = json(503, {});
    const { payments, runtime } = await harness.boot();
    const gates: number[] = [];
    for (let outage = 1; outage <= 9; outage += 1) {
      const calls = Array.from({ length: 20 }, () => payments.getTransaction('1'));
      for (const end of await Promise.allSettled(calls)) {
        expect(end).toMatchObject({ reason: { code: 'token_unavailable', status: 503 } });
      }
      expect(service.tokenRequests).toHaveLength(outage);
      const error = await payments.getTransaction('1').catch((error: unknown) => error);
      const { retryAfterMs } = error as { retryAfterMs: number };
      gates.push(retryAfterMs);
      runtime.advance(retryAfterMs - 1);
      await payments.getTransaction('1').catch(() => {});
      expect(service.tokenRequests).toHaveLength(outage);
      runtime.advance(1);
    }
    expect(gates).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    expect(service.calls).toHaveLength(0);
  });

  it('TK-09 the backoff starts over after a success', async () => {
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

  it.each([
    ['seconds', () => '60'],
    ['a date', (now: number) => new Date(now + 60 * SECOND).toUTCString()],
  ])('TK-09 Retry-After in %s is honoured', async (_, retryAfter) => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    service.onToken = json(429, {}, { 'retry-after': retryAfter(runtime.now()) });
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ retryAfterMs: 60_000 });
    runtime.advance(59 * SECOND);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ retryAfterMs: 1_000 });
    expect(service.tokenRequests).toHaveLength(1);
    runtime.advance(SECOND);
    await payments.getTransaction('1').catch(() => {});
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-09 wrong credentials are invalid_credentials, and no request is made for 30 s', async () => {
    const { service } = harness;
    service.onToken = json(401, { error: 'no' });
    const { payments, runtime } = await harness.boot();
    const refused = { code: 'invalid_credentials', status: 401, company: 'default' };
    await expect(payments.getTransaction('1')).rejects.toMatchObject(refused);
    runtime.advance(29 * SECOND);
    await expect(payments.getTransaction('1')).rejects.toMatchObject(refused);
    expect(service.tokenRequests).toHaveLength(1);
    runtime.advance(SECOND);
    await expect(payments.getTransaction('1')).rejects.toThrow(/clientId and clientSecret/);
    expect(service.tokenRequests).toHaveLength(2);
    runtime.advance(29 * SECOND);
    await expect(payments.getTransaction('1')).rejects.toMatchObject(refused);
    expect(service.tokenRequests).toHaveLength(2);
  });

  it.each([
    ['is no JSON', (): unknown => 'hello'],
    ['is null', () => null],
    ['has no access_token', () => ({ expires_in: '3599' })],
    ['has one that would end the header', () => ({ access_token: 'a\r\nx: y', expires_in: '1' })],
  ])('TK-09 an answer that %s is token_unavailable', async (_, answer) => {
    harness.service.onToken = json(200, answer());
    const { payments } = await harness.boot();
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'token_unavailable' });
    expect(harness.service.calls).toHaveLength(0);
  });

  it.each([404, 405])(
    'TK-09 a %i is token_unavailable, with a message that says to check the base URL',
    async (status) => {
      harness.service.onToken = json(status, {});
      const { payments } = await harness.boot();
      const call = payments.getTransaction('1');
      await expect(call).rejects.toMatchObject({ code: 'token_unavailable', status });
      await expect(call).rejects.toThrow(/answered 40\d to POST \/v1\/auth\/token: .*base URL/);
    },
  );

  it('TK-09 a redirect is token_unavailable, and the credentials do not follow it', async () => {
    harness.service.onToken = (_, response) =>
      response.writeHead(307, { location: `${harness.service.baseUrl}/elsewhere` }).end();
    const { payments } = await harness.boot();
    await expect(payments.getTransaction('1')).rejects.toThrow(/307.*redirect/);
    expect(harness.service.calls).toHaveLength(0);
  });

  it('TK-12 the result of a superseded refresh is discarded', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    await payments.getTransaction('1');
    // A background refresh hangs; meanwhile the token in use is revoked.
    const held: (() => void)[] = [];
    service.onToken = (request, response) =>
      held.push(() => json(200, service.tokenAnswer({ token: 'late' }))(request, response));
    runtime.advance(3540 * SECOND);
    await payments.getTransaction('1');
    await until(() => held.length === 1);
    service.onToken = (request, response) =>
      json(200, service.tokenAnswer({ token: 'fresh' }))(request, response);
    service.acceptOnly('fresh');
    await payments.getTransaction('1');
    held[0]?.();
    await payments.getTransaction('1');
    expect(service.calls.at(-1)?.headers.authorization).toBe('Bearer fresh');
    expect(service.calls.map(({ headers }) => headers.authorization)).not.toContain('Bearer late');
    expect(service.tokenRequests).toHaveLength(3);
  });

  it("TK-13 a caller's abort ends that caller's wait only", async () => {
    const { service } = harness;
    const held: (() => void)[] = [];
    const answer = service.onToken;
    service.onToken = (request, response) => held.push(() => answer(request, response));
    const { payments } = await harness.boot();
    const leaver = new AbortController();
    const leaving = payments.getTransaction('1', { signal: leaver.signal });
    const staying = payments.getTransaction('1');
    await until(() => held.length === 1);
    leaver.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'aborted', attempts: 0 });
    held[0]?.();
    await expect(staying).resolves.toEqual({ status: 'complete' });
    expect(service.tokenRequests).toHaveLength(1);
  });

  it('TK-14 the token request has its own timeout', async () => {
    const { service } = harness;
    const works = service.onToken;
    service.onToken = silence;
    const { payments, runtime } = await harness.boot({ tokenTimeoutMs: 3_000 });
    const call = payments.getTransaction('1');
    const ended = expect(call).rejects.toThrow(/no answer within 3000 ms/);
    await until(() => service.tokenRequests.length === 1);
    runtime.advance(3_000);
    await ended;
    service.onToken = works;
    runtime.advance(500);
    await expect(payments.getTransaction('1')).resolves.toBeDefined();
  });

  it('TK-14 the token request never waits for calls or their retries', async () => {
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
