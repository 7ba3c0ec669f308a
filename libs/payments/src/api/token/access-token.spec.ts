import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { AccessToken } from './access-token.js';
import type { TokenOutcome } from './token-request.js';

interface Request {
  signal: AbortSignal;
  answer(outcome: TokenOutcome): void;
  fail(error: Error): void;
}

/** An access token whose requests a test answers by hand. */
function scripted() {
  const runtime = new FakeRuntime();
  const requests: Request[] = [];
  const warnings: string[] = [];
  const token = new AccessToken({
    company: 'default',
    runtime,
    logger: { warn: (message) => warnings.push(message) },
    timeoutMs: 10_000,
    requestToken: (signal) =>
      new Promise((answer, fail) => {
        requests.push({ signal, answer, fail });
      }),
  });
  return { runtime, requests, warnings, token };
}

const good = (value: string, lifetimeMs = 3_599_000): TokenOutcome => ({
  ok: true,
  value,
  lifetimeMs,
});
const down: TokenOutcome = { ok: false, code: 'token_unavailable', message: 'down' };

async function warm(value = 'one') {
  const made = scripted();
  const first = made.token.get();
  made.requests[0]?.answer(good(value));
  await first;
  return made;
}

describe('AccessToken', () => {
  it('makes 1 request for 10,000 callers at once', async () => {
    const { token, requests } = scripted();
    const callers = Array.from({ length: 10_000 }, () => token.get());
    expect(requests).toHaveLength(1);
    requests[0]?.answer(good('one'));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['one']));
    expect(requests).toHaveLength(1);
  });

  it('rejects all 10,000 callers if their shared request fails, and makes no second request', async () => {
    const { token, requests } = scripted();
    const callers = Promise.allSettled(Array.from({ length: 10_000 }, () => token.get()));
    requests[0]?.answer(down);
    expect(new Set((await callers).map(({ status }) => status))).toEqual(new Set(['rejected']));
    await expect(token.get()).rejects.toMatchObject({ code: 'token_unavailable' });
    expect(requests).toHaveLength(1);
  });

  it('ends a request that ignores its signal, and whose promise never settles', async () => {
    const { token, requests, runtime } = scripted();
    const call = expect(token.get()).rejects.toThrow(/within 10000 ms/);
    runtime.advance(10_000);
    await call;
    expect(requests[0]?.signal.aborted).toBe(true);
    requests[0]?.answer(good('far too late'));
    runtime.advance(500);
    const next = token.get();
    requests[1]?.answer(good('two'));
    expect(await next).toBe('two');
  });

  it('does not pass on what a request threw, because it may contain credentials', async () => {
    const { token, requests } = scripted();
    const call = token.get();
    requests[0]?.fail(new Error('Basic c2VjcmV0'));
    const error = (await call.catch((error: unknown) => error)) as Error;
    expect(error).toMatchObject({ code: 'token_unavailable' });
    expect(error.cause).toBeUndefined();
    expect(error.message).not.toContain('Basic');
  });

  it('discards a superseded request, and gives its callers the new token', async () => {
    const { token, requests, runtime } = await warm();
    runtime.advance(3_575_000);
    const waiting = token.get();
    token.invalidate('one');
    expect(requests[1]?.signal.aborted).toBe(true);
    requests[1]?.answer(good('old news'));
    await Promise.resolve();
    const next = token.get();
    while (requests.length < 3) await Promise.resolve();
    requests[2]?.answer(good('two'));
    expect(await Promise.all([waiting, next])).toEqual(['two', 'two']);
    expect(await token.get()).toBe('two');
    expect(requests).toHaveLength(3);
  });

  it('drops only the current token', async () => {
    const { token, requests } = await warm();
    token.invalidate('another');
    expect(await token.get()).toBe('one');
    expect(requests).toHaveLength(1);
  });

  it('backs off while every new token is rejected, and fetches at once again after one was accepted', async () => {
    const { token, requests, runtime } = await warm();
    let current = 'one';
    const rejectAgain = async (): Promise<boolean> => {
      const before = requests.length;
      token.invalidate(current);
      const next = token.get();
      requests[before]?.answer(good(`token-${before}`));
      current = await next;
      return requests.length > before;
    };
    let fetched = 0;
    for (let second = 0; second < 300; second += 1) {
      if (await rejectAgain()) fetched += 1;
      runtime.advance(1_000);
    }
    // 0.5, 1, 2, 4, 8, 16 and then 30 s apart.
    expect(fetched).toBeGreaterThan(10);
    expect(fetched).toBeLessThan(18);
    token.accept(current);
    expect(await rejectAgain()).toBe(true);
  });

  it('returns a token that expires soon while the endpoint is down, but not one that has expired', async () => {
    const { token, requests, runtime } = await warm();
    runtime.advance(3_580_000);
    const call = token.get();
    requests[1]?.answer(down);
    expect(await call).toBe('one');
    expect(await token.get()).toBe('one');
    runtime.advance(19_000);
    const late = token.get();
    requests[2]?.answer(down);
    await expect(late).rejects.toMatchObject({ code: 'token_unavailable' });
  });

  it('backs off after a background request with wrong credentials, and still returns the current token', async () => {
    const { token, requests, runtime, warnings } = await warm();
    runtime.advance(3_500_000);
    await token.get();
    requests[1]?.answer({ ok: false, code: 'invalid_credentials', message: 'refused' });
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

  it('obeys Retry-After, but not for longer than five minutes', async () => {
    const { token, requests } = scripted();
    const call = token.get();
    requests[0]?.answer({ ...down, retryAfterMs: 86_400_000 });
    await expect(call).rejects.toMatchObject({ retryAfterMs: 300_000 });
  });

  it('rejects all callers after close(), and leaves no timer', async () => {
    const { token, requests, runtime } = scripted();
    const call = expect(token.get()).rejects.toMatchObject({ code: 'aborted' });
    token.close();
    await call;
    expect(requests[0]?.signal.aborted).toBe(true);
    expect(runtime.pending).toBe(0);
    await expect(token.get()).rejects.toMatchObject({ code: 'aborted' });
    expect(requests).toHaveLength(1);
  });
});
