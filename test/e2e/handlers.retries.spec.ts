import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { eventually } from '../support/eventually.js';
import { FakeRuntime, until } from '../support/fake.runtime.js';
import { delivery, onEachAdapter, storedDelivery } from '../support/handler.application.js';
import type { WebhookApplication } from '../support/webhook.application.js';

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

/** Resolves when the attempt of that number has failed and been recorded. */
async function failed(app: WebhookApplication, id: string, attempt: number): Promise<void> {
  const lines = new RegExp(`event ${id} .*failed \\(attempt ${attempt} of`);
  await until(() => app.log.matching(lines).length > 0, `failure ${attempt}`);
  // The log comes first, the record after it.
  await eventually(async () =>
    expect((await storedDelivery(app, id)).lastError).toBe(`Error: attempt ${attempt}`),
  );
}

/** Resolves when the worker sleeps so long. */
function asleep(runtime: FakeRuntime, ms: number): Promise<void> {
  return until(() => runtime.nextIn === ms, `the sleep of ${ms} ms`);
}

onEachAdapter((start) => {
  it('22: tries again in the background, each time after twice as long, until it succeeds', async () => {
    const runtime = reset(4);
    await using app = await start({ providers: [Flaky], payments: { runtime } });
    expect(await app.send(delivery({ id: 'e-1' }))).toMatchObject({ status: 503 });
    // Half of 1 s, of 2 s, of 4 s: the runtime's chance is 0.5.
    for (const [index, waitMs] of [500, 1000, 2000].entries()) {
      await failed(app, 'e-1', index + 1);
      await asleep(runtime, waitMs);
      runtime.advance(waitMs - 1);
      await new Promise((resolve) => setImmediate(resolve));
      expect(attempts).toHaveLength(index + 1);
      runtime.advance(1);
      await until(() => attempts.length === index + 2, `attempt ${index + 2}`);
    }
    // The worker's sleep, and the pruner's.
    await until(() => runtime.pending === 2, 'the end of the heartbeat');
    await eventually(async () =>
      expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'done', attempts: 4 }),
    );
    expect(attempts).toEqual([1, 2, 3, 4]);
    expect(await app.send(delivery({ id: 'e-1' }))).toMatchObject({ status: 200 });
    expect(attempts).toHaveLength(4);
  });

  it('22: gives up after maxAttempts: dead, kept, and logged as such', async () => {
    const runtime = reset();
    const worker = { maxAttempts: 3, firstRetryMs: 100, maxRetryMs: 100 };
    await using app = await start({ providers: [Flaky], payments: { runtime, worker } });
    await app.send(delivery({ id: 'e-1' }));
    for (const attempt of [1, 2]) {
      await failed(app, 'e-1', attempt);
      await asleep(runtime, 50);
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
    runtime.advance(3_600_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(attempts).toEqual([1, 2, 3]);
  });

  it('22: runs a dead one again for a copy, and counts its attempts anew', async () => {
    const runtime = reset(4);
    const worker = { maxAttempts: 2, firstRetryMs: 100 };
    await using app = await start({ providers: [Flaky], payments: { runtime, worker } });
    const sent = delivery({ id: 'e-1' });
    await app.send(sent);
    await failed(app, 'e-1', 1);
    await asleep(runtime, 50);
    runtime.advance(50);
    await failed(app, 'e-1', 2);
    expect((await storedDelivery(app, 'e-1')).state).toBe('dead');
    expect(await app.send(sent)).toMatchObject({ status: 503 });
    expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'pending', attempts: 1 });
    expect(await app.send(sent)).toMatchObject({ status: 200 });
    expect(attempts).toEqual([1, 2, 1, 2]);
    expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'done', attempts: 2 });
  });

  it('20: retries only what failed, and leaves the worker to others meanwhile', async () => {
    const runtime = reset(2);
    let others = 0;
    @Injectable()
    class Other {
      @OnPaymentEvent('*', { name: 'other' })
      handle(): void {
        others += 1;
      }
    }
    const worker = { concurrency: 1 };
    await using app = await start({ providers: [Flaky, Other], payments: { runtime, worker } });
    await app.send(delivery({ id: 'e-1' }));
    await app.send(delivery({ id: 'e-2' }));
    expect(attempts).toHaveLength(2);
    expect(others).toBe(2);
    await asleep(runtime, 500);
    runtime.advance(500);
    await until(() => attempts.length === 3);
    expect(others).toBe(2);
  });

  it('22: sleeps without a timer of its own per delivery, and without polling while it waits', async () => {
    const runtime = reset();
    const worker = { firstRetryMs: 3_600_000 };
    await using app = await start({ providers: [Flaky], payments: { runtime, worker } });
    for (let i = 0; i < 20; i += 1) await app.send(delivery());
    // The other one is the pruner's.
    await until(() => runtime.pending === 2, 'one timer');
    expect(runtime.nextIn).toBe(30_000);
  });
});
