import type { ServerResponse } from 'node:http';
import { expect, it } from '@jest/globals';
import type { ApiApplication } from '../../support/api/api-client-application.js';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { until } from '../../support/time/waiting.js';
import { hangUp, json, silence } from '../../support/api/scripted-service.js';

const SECOND = 1000;

describeWithEachAdapter('retries of a GET', (harness) => {
  /** Waits until the call waits before its next attempt. Returns that wait in milliseconds. */
  const waitOf = async ({ runtime }: ApiApplication, afterCalls: number): Promise<number> => {
    // The timer of an attempt has 10 s; the timer of the wait between two attempts is shorter.
    const waits = (): boolean =>
      harness.service.calls.length >= afterCalls && (runtime.nextIn ?? Infinity) < 10_000;
    await until(waits, 'the wait before the next attempt');
    return runtime.nextIn ?? 0;
  };

  it.each([
    ['a closed connection', hangUp],
    ['408', json(408, {})],
    ['429', json(429, {})],
    ['500', json(500, {})],
    ['599', json(599, {})],
    [
      'a response that is interrupted',
      (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{"a":', () => response.socket?.destroy());
      },
    ],
  ])('HT-23 a GET is retried after %s', async (_, script) => {
    const application = await harness.boot();
    harness.service.queue.push(script, script);
    const call = application.payments.getTransaction('1');
    await waitOf(application, 1);
    application.runtime.advance(200);
    await waitOf(application, 2);
    application.runtime.advance(400);
    await expect(call).resolves.toEqual({ status: 'complete' });
    expect(harness.service.calls).toHaveLength(3);
  });

  it('HT-23 a GET is retried after an attempt that timed out', async () => {
    const application = await harness.boot({ attemptTimeoutMs: 1_000, deadlineMs: 60_000 });
    harness.service.queue.push(silence);
    const call = application.payments.getTransaction('1');
    await until(() => harness.service.calls.length === 1);
    application.runtime.advance(1_000);
    await until(() => (application.runtime.nextIn ?? Infinity) < 1_000);
    application.runtime.advance(200);
    await expect(call).resolves.toEqual({ status: 'complete' });
  });

  it('HT-23 the waits between attempts double with jitter up to maxDelayMs, until the last attempt', async () => {
    for (const [chance, waits] of [
      [0, [200, 400, 500]],
      [0.5, [150, 300, 375]],
    ] as const) {
      const retry = { attempts: 4, maxDelayMs: 500 };
      const application = await harness.boot({ retry });
      application.runtime.chance = chance;
      harness.service.onCall = json(503, {});
      const before = harness.service.calls.length;
      const call = application.payments.getTransaction('1');
      const ended = expect(call).rejects.toMatchObject({ code: 'server_error', attempts: 4 });
      for (const [index, wait] of waits.entries()) {
        expect(await waitOf(application, before + index + 1)).toBe(wait);
        application.runtime.advance(wait);
      }
      await ended;
      expect(harness.service.calls).toHaveLength(before + 4);
    }
  });

  it.each([
    ['a number of seconds', () => '7', 7 * SECOND],
    ['a date that has passed', (now: number) => new Date(now - 9e6).toUTCString(), 150],
    ['longer than maxRetryAfterMs', () => '3600', 9 * SECOND],
    ['invalid', () => '-5', 150],
  ])('HT-23 a retry waits as documented if Retry-After is %s', async (_, header, wait) => {
    const application = await harness.boot({ retry: { maxRetryAfterMs: 9 * SECOND } });
    const retryAfter = header(application.runtime.now());
    harness.service.queue.push(json(429, {}, { 'retry-after': retryAfter }));
    const call = application.payments.getTransaction('1');
    expect(await waitOf(application, 1)).toBe(wait);
    application.runtime.advance(wait);
    await expect(call).resolves.toBeDefined();
  });

  it('HT-23 a signal aborts the wait between two attempts', async () => {
    const application = await harness.boot();
    harness.service.onCall = json(503, {});
    const controller = new AbortController();
    const call = application.payments.getTransaction('1', { signal: controller.signal });
    const ended = expect(call).rejects.toMatchObject({ code: 'aborted', attempts: 1 });
    await waitOf(application, 1);
    controller.abort();
    await ended;
    expect(application.runtime.pending).toBe(0);
    expect(harness.service.calls).toHaveLength(1);
  });

  it('HT-23 the deadline includes the wait for the token, all attempts and the waits between them', async () => {
    const { service } = harness;
    const waiting: (() => void)[] = [];
    const respond = service.onToken;
    service.onToken = (request, response) => waiting.push(() => respond(request, response));
    const retry = { attempts: 10, baseDelayMs: 1_000 };
    const application = await harness.boot({ deadlineMs: 10_000, attemptTimeoutMs: 4_000, retry });
    const { runtime, payments } = application;
    service.onCall = silence;
    const call = payments.getTransaction('1');
    const ended = expect(call).rejects.toMatchObject({ code: 'timeout', attempts: 2 });
    await until(() => waiting.length === 1);
    runtime.advance(4_000);
    waiting[0]?.();
    await until(() => service.calls.length === 1);
    runtime.advance(4_000);
    await until(() => runtime.nextIn === 750, 'the wait between attempts');
    runtime.advance(750);
    await until(() => service.calls.length === 2);
    runtime.advance(1_249);
    expect(runtime.pending).toBeGreaterThan(0);
    runtime.advance(1);
    await ended;
    expect(runtime.pending).toBe(0);
  });

  it('HT-23 the deadline includes the lookup of the company; a missing company causes company_unknown', async () => {
    const companies = new Map();
    const { payments, runtime } = await harness.boot({}, companies);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'company_unknown' });
    companies.get = () => new Promise(() => {});
    const call = payments.getTransaction('1', { deadlineMs: 3_000 });
    const ended = expect(call).rejects.toMatchObject({ code: 'timeout', attempts: 0 });
    await new Promise((resolve) => setImmediate(resolve));
    runtime.advance(3_000);
    await ended;
    expect(harness.service.tokenRequests).toHaveLength(0);
  });

  it('HT-23 a call rejects at once with the last error if the next wait would exceed its deadline', async () => {
    const { payments } = await harness.boot({ deadlineMs: 5_000 });
    harness.service.onCall = json(503, {}, { 'retry-after': '6' });
    await expect(payments.getTransaction('1')).rejects.toMatchObject({
      code: 'server_error',
      retryAfterMs: 6_000,
      attempts: 1,
    });
  });

  it('HT-23 a call whose token takes longer than the deadline rejects with timeout and sends no request', async () => {
    harness.service.onToken = silence;
    const { payments, runtime } = await harness.boot({ deadlineMs: 2_000 });
    const call = payments.post('/v1/things');
    const ended = expect(call).rejects.toMatchObject({ code: 'timeout', attempts: 0 });
    await until(() => harness.service.tokenRequests.length === 1);
    runtime.advance(2_000);
    await ended;
  });
});
