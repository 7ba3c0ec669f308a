import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { exponential, fixed, none, OnPaymentEvent, UnrecoverableError } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { eventually, timersAtRest, turns, until } from '../../support/time/waiting.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import {
  webhookRequest,
  onOneAdapter,
  storedDelivery,
} from '../../support/webhook/handler-application.js';
import type { WebhookApplication } from '../../support/webhook/webhook-application.js';

let attempts: number[] = [];
let succeedsAt = Infinity;

@Injectable()
class Flaky {
  @OnPaymentEvent('*')
  handle(_event: PaymentEvent, context: PaymentEventContext): void {
    attempts.push(context.attempt);
    if (attempts.length < succeedsAt) throw new Error(`attempt ${context.attempt}`);
  }
}

function reset(succeeds = Infinity): FakeRuntime {
  attempts = [];
  succeedsAt = succeeds;
  return new FakeRuntime();
}

/** Resolves when the inbox has stored and logged the failure of attempt number `attempt`. */
async function failed(app: WebhookApplication, id: string, attempt: number): Promise<void> {
  const lines = new RegExp(`event ${id} .*failed \\(attempt ${attempt} of`);
  // The worker stores the failure before it logs it.
  await until(() => app.log.matching(lines).length > 0, `failure ${attempt}`);
  expect((await storedDelivery(app, id)).lastError).toBe(`Error: attempt ${attempt}`);
}

/** Advances the runtime by `ms` milliseconds in steps of at most a second, and lets due work run after each. */
async function pass(runtime: FakeRuntime, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) {
    runtime.advance(Math.min(left, 1000));
    await turns(5);
  }
}

onOneAdapter('retries of deliveries', (start) => {
  it('IN-18 the application retries a delivery after attempt^4 seconds with jitter, until the handler succeeds', async () => {
    const runtime = reset(4);
    await using app = await start({ providers: [Flaky], payments: { runtime } });
    expect(await app.send(webhookRequest({ id: 'e-1' }))).toMatchObject({ status: 503 });
    // 1, 16 and 81 s, times 1.5, because random() of the runtime returns 0.5.
    for (const [index, waitMs] of [1500, 24_000, 121_500].entries()) {
      await failed(app, 'e-1', index + 1);
      await pass(runtime, waitMs - 1);
      expect(attempts).toHaveLength(index + 1);
      runtime.advance(1);
      await until(() => attempts.length === index + 2, `attempt ${index + 2}`);
    }
    await eventually(async () =>
      expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'done', attempts: 4 }),
    );
    expect(attempts).toEqual([1, 2, 3, 4]);
    expect(await app.send(webhookRequest({ id: 'e-1' }))).toMatchObject({ status: 200 });
    expect(attempts).toHaveLength(4);
  });

  it('IN-18 the application makes a delivery a dead letter after its last attempt, and logs it', async () => {
    const runtime = reset();
    const worker = { retry: fixed([50, 50]) };
    await using app = await start({ providers: [Flaky], payments: { runtime, worker } });
    await app.send(webhookRequest({ id: 'e-1' }));
    for (const attempt of [1, 2]) {
      await failed(app, 'e-1', attempt);
      await until(() => runtime.nextIn === 50);
      runtime.advance(50);
    }
    await failed(app, 'e-1', 3);
    expect(await storedDelivery(app, 'e-1')).toMatchObject({
      state: 'dead',
      attempts: 3,
      lastError: 'Error: attempt 3',
    });
    expect(app.log.matching(/^error .*attempt 3 of 3.*is dead; it is kept/)).toHaveLength(1);
    expect(app.log.matching(/^warn .*next attempt in 50 ms/)).toHaveLength(2);
    await pass(runtime, 100_000);
    expect(attempts).toEqual([1, 2, 3]);
  });

  it('IN-18 the application runs a dead delivery again when a copy of its event arrives, from attempt 1', async () => {
    const runtime = reset(4);
    const worker = { retry: exponential({ attempts: 2, firstMs: 20 }) };
    await using app = await start({ providers: [Flaky], payments: { runtime, worker } });
    const sent = webhookRequest({ id: 'e-1' });
    await app.send(sent);
    await failed(app, 'e-1', 1);
    await until(() => runtime.nextIn === 30);
    runtime.advance(30);
    await failed(app, 'e-1', 2);
    expect((await storedDelivery(app, 'e-1')).state).toBe('dead');
    expect(await app.send(sent)).toMatchObject({ status: 503 });
    expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'pending', attempts: 1 });
    expect(await app.send(sent)).toMatchObject({ status: 200 });
    expect(attempts).toEqual([1, 2, 1, 2]);
    expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'done', attempts: 2 });
  });

  it('IN-18 the application uses the retry schedule of the handler, and does not retry an unrecoverable error', async () => {
    const runtime = reset();
    @Injectable()
    class Schedules {
      @OnPaymentEvent('*', { name: 'once', retry: none })
      once(): void {
        throw new Error('no');
      }

      @OnPaymentEvent('*', { name: 'later', retry: fixed([7000]) })
      later(): void {
        throw new Error('no');
      }

      @OnPaymentEvent('*', { name: 'hopeless' })
      hopeless(): void {
        throw new UnrecoverableError('only KES is booked here');
      }
    }
    await using app = await start({ providers: [Schedules], payments: { runtime } });
    expect(await app.send(webhookRequest({ id: 'e-1' }))).toMatchObject({ status: 503 });
    const now = runtime.now();
    expect(await storedDelivery(app, 'e-1', 'once')).toMatchObject({ state: 'dead', attempts: 1 });
    expect(await storedDelivery(app, 'e-1', 'hopeless')).toMatchObject({
      state: 'dead',
      attempts: 1,
    });
    const later = await storedDelivery(app, 'e-1', 'later');
    expect(later).toMatchObject({ state: 'pending', attempts: 1 });
    expect(later.dueAt!.getTime()).toBe(now + 7000);
  });

  it('the application schedules no timer for each delivery that waits for its next attempt', async () => {
    const runtime = reset();
    const worker = { retry: fixed([3_600_000]) };
    await using app = await start({ providers: [Flaky], payments: { runtime, worker } });
    const before = await timersAtRest(runtime);
    for (let i = 0; i < 20; i += 1) await app.send(webhookRequest());
    expect(await timersAtRest(runtime)).toBe(before);
  });
});
