import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { AccessToken } from './access-token.js';
import type { TokenResult } from './access-token.js';

/** A token request that waits for the test. */
interface PendingRequest {
  signal: AbortSignal;
  respond(result: TokenResult): void;
  fail(error: Error): void;
}

/** Creates an access token whose token requests wait until the test responds. */
function emptyToken() {
  const runtime = new FakeRuntime();
  const requests: PendingRequest[] = [];
  const warnings: string[] = [];
  const token = new AccessToken({
    company: 'default',
    runtime,
    logger: { warn: (message) => warnings.push(String(message)) },
    timeoutMs: 10_000,
    requestToken: (signal) =>
      new Promise((respond, fail) => {
        requests.push({ signal, respond, fail });
      }),
  });
  return { runtime, requests, warnings, token };
}

const good = (value: string, lifetimeMs = 3_599_000): TokenResult => ({
  ok: true,
  value,
  lifetimeMs,
});
const down: TokenResult = { ok: false, code: 'token_unavailable', message: 'down' };

/** Creates an access token that was fetched. */
async function fetchedToken(value = 'one') {
  const fetched = emptyToken();
  const first = fetched.token.get();
  fetched.requests[0]?.respond(good(value));
  await first;
  return fetched;
}

describe('AccessToken', () => {
  it('TK-02 AccessToken sends 1 token request for 10,000 concurrent callers', async () => {
    const { token, requests } = emptyToken();
    const callers = Array.from({ length: 10_000 }, () => token.get());
    expect(requests).toHaveLength(1);
    requests[0]?.respond(good('one'));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['one']));
    expect(requests).toHaveLength(1);
  });

  it('TK-02 AccessToken rejects 10,000 concurrent callers if their token request fails, and sends no second token request', async () => {
    const { token, requests } = emptyToken();
    const callers = Promise.allSettled(Array.from({ length: 10_000 }, () => token.get()));
    requests[0]?.respond(down);
    expect(new Set((await callers).map(({ status }) => status))).toEqual(new Set(['rejected']));
    await expect(token.get()).rejects.toMatchObject({ code: 'token_unavailable' });
    expect(requests).toHaveLength(1);
  });

  it('AccessToken rejects the caller after the timeout if the request ignores its signal', async () => {
    const { token, requests, runtime } = emptyToken();
    const call = expect(token.get()).rejects.toThrow(/within 10000 ms/);
    runtime.advance(10_000);
    await call;
    expect(requests[0]?.signal.aborted).toBe(true);
    requests[0]?.respond(good('late'));
    runtime.advance(500);
    const next = token.get();
    requests[1]?.respond(good('two'));
    expect(await next).toBe('two');
  });

  it('AccessToken drops the error that a request threw, because the error may contain credentials', async () => {
    const { token, requests } = emptyToken();
    const call = token.get();
    requests[0]?.fail(new Error('Basic c2VjcmV0'));
    const error = (await call.catch((error: unknown) => error)) as Error;
    expect(error).toMatchObject({ code: 'token_unavailable' });
    expect(error.cause).toBeUndefined();
    expect(error.message).not.toContain('Basic');
  });

  it('AccessToken discards the result of a token request that invalidate() replaced, and returns the new token to the callers of this request', async () => {
    const { token, requests, runtime } = await fetchedToken();
    runtime.advance(3_575_000);
    const waiting = token.get();
    token.invalidate('one');
    expect(requests[1]?.signal.aborted).toBe(true);
    requests[1]?.respond(good('outdated'));
    await Promise.resolve();
    const next = token.get();
    while (requests.length < 3) await Promise.resolve();
    requests[2]?.respond(good('two'));
    expect(await Promise.all([waiting, next])).toEqual(['two', 'two']);
    expect(await token.get()).toBe('two');
    expect(requests).toHaveLength(3);
  });

  it('AccessToken ignores invalidate() for a token that is not the current one', async () => {
    const { token, requests } = await fetchedToken();
    token.invalidate('another');
    expect(await token.get()).toBe('one');
    expect(requests).toHaveLength(1);
  });

  it('AccessToken backs off until the service accepts one of its new tokens', async () => {
    const { token, requests, runtime } = await fetchedToken();
    let current = 'one';
    const rejectAgain = async (): Promise<boolean> => {
      const before = requests.length;
      token.invalidate(current);
      const next = token.get();
      requests[before]?.respond(good(`token-${before}`));
      current = await next;
      return requests.length > before;
    };
    let fetched = 0;
    for (let second = 0; second < 300; second += 1) {
      if (await rejectAgain()) fetched += 1;
      runtime.advance(1_000);
    }
    // The waits are 0.5, 1, 2, 4, 8, 16 and then 30 s.
    expect(fetched).toBeGreaterThan(10);
    expect(fetched).toBeLessThan(18);
    token.accept(current);
    expect(await rejectAgain()).toBe(true);
  });

  it('AccessToken returns its token while the token endpoint is down, and rejects callers after the token has expired', async () => {
    const { token, requests, runtime } = await fetchedToken();
    runtime.advance(3_580_000);
    const call = token.get();
    requests[1]?.respond(down);
    expect(await call).toBe('one');
    expect(await token.get()).toBe('one');
    runtime.advance(19_000);
    const late = token.get();
    requests[2]?.respond(down);
    await expect(late).rejects.toMatchObject({ code: 'token_unavailable' });
  });

  it('AccessToken returns the current token and backs off after a background request failed because of wrong credentials', async () => {
    const { token, requests, runtime, warnings } = await fetchedToken();
    runtime.advance(3_500_000);
    await token.get();
    requests[1]?.respond({ ok: false, code: 'invalid_credentials', message: 'rejected' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toHaveLength(1);
    runtime.advance(29_000);
    expect(await token.get()).toBe('one');
    expect(requests).toHaveLength(2);
    runtime.advance(1_000);
    expect(await token.get()).toBe('one');
    expect(requests).toHaveLength(3);
    token.close();
  });

  it('AccessToken obeys a Retry-After of at most five minutes', async () => {
    const { token, requests } = emptyToken();
    const call = token.get();
    requests[0]?.respond({ ...down, retryAfterMs: 86_400_000 });
    await expect(call).rejects.toMatchObject({ retryAfterMs: 300_000 });
  });

  it('AccessToken rejects all callers after close(), and cancels its timer', async () => {
    const { token, requests, runtime } = emptyToken();
    const call = expect(token.get()).rejects.toMatchObject({ code: 'aborted' });
    token.close();
    await call;
    expect(requests[0]?.signal.aborted).toBe(true);
    expect(runtime.pending).toBe(0);
    await expect(token.get()).rejects.toMatchObject({ code: 'aborted' });
    expect(requests).toHaveLength(1);
  });
});
