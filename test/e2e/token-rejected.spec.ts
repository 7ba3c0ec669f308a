import { expect, it } from '@jest/globals';
import { describeWithEachAdapter } from '../support/api/api-harness.js';
import { until } from '../support/time/waiting.js';
import { json, type Script } from '../support/api/scripted-service.js';

describeWithEachAdapter('a token that the service rejects', (harness) => {
  const bearers = (): (string | undefined)[] =>
    harness.service.calls.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));

  it.each(['get', 'post'] as const)(
    'TK-10 after a 401 on a %s the token is dropped, a new one is fetched, and the call is repeated once',
    async (verb) => {
      const { service } = harness;
      service.acceptOnly('token-2');
      const { payments } = await harness.boot();
      await expect(payments[verb]('/v1/things')).resolves.toEqual({});
      expect(bearers()).toEqual(['token-1', 'token-2']);
      expect(service.tokenRequests).toHaveLength(2);
    },
  );

  it('TK-10 a second 401 is thrown', async () => {
    harness.service.onCall = json(401, { message: 'no' });
    const { payments } = await harness.boot();
    const error = await payments.getTransaction('1').catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'authentication_failed', status: 401, attempts: 2 });
    expect(bearers()).toEqual(['token-1', 'token-2']);
  });

  it('TK-10 a second 401 is thrown, even if it arrives late', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    service.onCall = (request, response) => {
      runtime.advance(2_000);
      json(401, {})(request, response);
    };
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ attempts: 2 });
  });

  it('TK-10 a token that was accepted and then revoked is replaced each time without a wait', async () => {
    const { service } = harness;
    const { payments } = await harness.boot();
    for (let n = 1; n <= 5; n += 1) {
      service.acceptOnly(`token-${n}`);
      await expect(payments.getTransaction('1')).resolves.toEqual({});
    }
    expect(service.tokenRequests).toHaveLength(5);
  });

  it('TK-10 if the new token equals the rejected one, the call is not repeated', async () => {
    const { service } = harness;
    service.onToken = json(200, service.tokenAnswer({ token: 'the-same' }));
    service.onCall = json(401, {});
    const { payments } = await harness.boot();
    await expect(payments.getTransaction('1')).rejects.toMatchObject({
      code: 'authentication_failed',
      attempts: 1,
    });
    expect(service.tokenRequests).toHaveLength(2);
    // Nor is the endpoint asked at every further call.
    for (let call = 0; call < 10; call += 1) {
      await expect(payments.getTransaction('1')).rejects.toMatchObject({
        code: 'authentication_failed',
      });
    }
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-10 a 5xx does not prove that the token was accepted: a 401 after it causes no token request', async () => {
    const { service } = harness;
    const { payments } = await harness.boot({ retry: false });
    const answers = [401, 503, 401].map((status) => json(status, {}));
    service.queue.push(...answers);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'server_error' });
    expect(bearers()).toEqual(['token-1', 'token-2']);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({
      code: 'authentication_failed',
    });
    expect(service.tokenRequests).toHaveLength(2);
  });

  it('TK-11 10 calls rejected at different times with one revoked token make 1 token request', async () => {
    const { service } = harness;
    const { payments } = await harness.boot();
    await payments.getTransaction('warm');
    const answers: (() => void)[] = [];
    const rejectedLater: Script = (request, response) =>
      answers.push(() => json(401, {})(request, response));
    service.queue.push(...Array.from({ length: 10 }, () => rejectedLater));
    const calls = Array.from({ length: 10 }, (_, n) => payments.getTransaction(`${n}`));
    await until(() => answers.length === 10);
    for (const [n, answer] of answers.entries()) {
      answer();
      // Each is rejected when the one before has long been made again with the new token.
      await until(() => service.calls.length === 12 + n);
    }
    await expect(Promise.all(calls)).resolves.toHaveLength(10);
    expect(service.tokenRequests).toHaveLength(2);
    expect(bearers().slice(11)).toEqual(Array.from({ length: 10 }, () => 'token-2'));
  });

  it('TK-11 a 401 for an old token causes no token request', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    const held: (() => void)[] = [];
    service.queue.push((request, response) => held.push(() => json(401, {})(request, response)));
    const slow = payments.getTransaction('slow', { deadlineMs: 600_000 });
    await until(() => held.length === 1);
    runtime.setWallClock(3_600_000);
    await payments.getTransaction('1');
    expect(service.tokenRequests).toHaveLength(2);
    held[0]?.();
    await expect(slow).resolves.toBeDefined();
    expect(service.tokenRequests).toHaveLength(2);
    expect(bearers().at(-1)).toBe('token-2');
  });

  it('TK-19 a sandbox token against the production host is a 401 whose message says that base URL and credentials must belong together', async () => {
    harness.service.onCall = json(401, {});
    const { payments } = await harness.boot();
    const call = payments.getTransaction('1');
    await expect(call).rejects.toThrow(/base URL .*credentials belong together/);
    await expect(call).rejects.toThrow(/sandbox.*production/);
    await expect(call).rejects.toMatchObject({ code: 'authentication_failed', status: 401 });
    // Fresh tokens that are rejected at once don't make a token request per call.
    for (let n = 0; n < 20; n += 1) await payments.getTransaction('1').catch(() => {});
    expect(harness.service.tokenRequests).toHaveLength(2);
  });
});
