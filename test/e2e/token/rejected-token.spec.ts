import { describe, expect, it } from '@jest/globals';
import { apiHarness } from '../../support/api/api-harness.js';
import { until } from '../../support/time/waiting.js';
import { json, type Script } from '../../support/api/scripted-service.js';

describe('calls with a token that the service rejects', () => {
  const harness = apiHarness();

  const bearers = (): (string | undefined)[] =>
    harness.service.calls.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));

  it.each(['get', 'post'] as const)(
    'TK-10 after a 401, %s() fetches a new token and sends the request once more',
    async (verb) => {
      const { service } = harness;
      service.acceptOnly('token-2');
      const { payments } = await harness.boot();
      await expect(payments[verb]('/v1/things')).resolves.toEqual({});
      expect(bearers()).toEqual(['token-1', 'token-2']);
      expect(service.tokenRequests).toHaveLength(2);
    },
  );

  it('TK-10 a call whose second 401 arrives after 2 s makes no third attempt', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    service.onCall = (request, response) => {
      runtime.advance(2_000);
      json(401, {})(request, response);
    };
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ attempts: 2 });
  });

  it('TK-10 a token that was accepted and then revoked is replaced without a wait, five times in a row', async () => {
    const { service } = harness;
    const { payments } = await harness.boot();
    for (let n = 1; n <= 5; n += 1) {
      service.acceptOnly(`token-${n}`);
      await expect(payments.getTransaction('1')).resolves.toEqual({});
    }
    expect(service.tokenRequests).toHaveLength(5);
  });

  it('TK-10 a call is not repeated if the new token equals the rejected token', async () => {
    const { service } = harness;
    service.onToken = json(200, service.tokenAnswer({ token: 'the-same' }));
    service.onCall = json(401, {});
    const { payments } = await harness.boot();
    await expect(payments.getTransaction('1')).rejects.toMatchObject({
      code: 'authentication_failed',
      attempts: 1,
    });
    expect(service.tokenRequests).toHaveLength(2);
    // Further calls send no token request either.
    for (let call = 0; call < 10; call += 1) {
      await expect(payments.getTransaction('1')).rejects.toMatchObject({
        code: 'authentication_failed',
      });
    }
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-10 a new token that gets a 5xx and then a 401 causes no further token request', async () => {
    const { service } = harness;
    const { payments } = await harness.boot({ retry: false });
    const responses = [401, 503, 401].map((status) => json(status, {}));
    service.queue.push(...responses);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'server_error' });
    expect(bearers()).toEqual(['token-1', 'token-2']);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({
      code: 'authentication_failed',
    });
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-11 10 calls with one revoked token send 1 token request, even if their 401s arrive one by one', async () => {
    const { service } = harness;
    const { payments } = await harness.boot();
    await payments.getTransaction('warm');
    const responses: (() => void)[] = [];
    const rejectedLater: Script = (request, response) =>
      responses.push(() => json(401, {})(request, response));
    service.queue.push(...Array.from({ length: 10 }, () => rejectedLater));
    const calls = Array.from({ length: 10 }, (_, n) => payments.getTransaction(`${n}`));
    await until(() => responses.length === 10);
    for (const [n, respond] of responses.entries()) {
      respond();
      // The next 401 is sent after this call was repeated with the new token.
      await until(() => service.calls.length === 12 + n);
    }
    await expect(Promise.all(calls)).resolves.toHaveLength(10);
    expect(service.tokenRequests).toHaveLength(2);
    expect(bearers().slice(11)).toEqual(Array.from({ length: 10 }, () => 'token-2'));
  });

  it('TK-11 a 401 for an outdated token causes no token request', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    const waiting: (() => void)[] = [];
    service.queue.push((request, response) => waiting.push(() => json(401, {})(request, response)));
    const slow = payments.getTransaction('slow', { deadlineMs: 600_000 });
    await until(() => waiting.length === 1);
    runtime.setWallClock(3_600_000);
    await payments.getTransaction('1');
    expect(service.tokenRequests).toHaveLength(2);
    waiting[0]?.();
    await expect(slow).resolves.toBeDefined();
    expect(service.tokenRequests).toHaveLength(2);
    expect(bearers().at(-1)).toBe('token-2');
  });

  it('TK-19 the error of a second 401 states that the base URL and the credentials must belong together', async () => {
    harness.service.onCall = json(401, {});
    const { payments } = await harness.boot();
    const call = payments.getTransaction('1');
    await expect(call).rejects.toThrow(/base URL .*credentials belong together/);
    await expect(call).rejects.toThrow(/sandbox.*production/);
    await expect(call).rejects.toMatchObject({
      code: 'authentication_failed',
      status: 401,
      attempts: 2,
    });
    // Further calls send no token request while the service rejects new tokens.
    for (let n = 0; n < 20; n += 1) await payments.getTransaction('1').catch(() => {});
    expect(harness.service.tokenRequests).toHaveLength(2);
  });
});
