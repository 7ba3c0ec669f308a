import { describe, expect, it } from '@jest/globals';
import { turns } from '../../../../../test/support/inbox/worker-harness.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import { fixed } from '../../events/retry-schedule.js';
import { UnrecoverableError } from '../../errors/payments-error.js';
import { NO_OBSERVERS } from '../../telemetry/observers.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';
import { Attempt } from './attempt.js';
import type { AttemptServices } from './attempt.js';

/** Runs an attempt whose handler throws `thrown`. Returns the call of the store, the log, and when the slot is free. */
async function settleFailure(
  thrown: unknown,
  { attempt = 1, closing = false, elsewhere = true } = {},
) {
  const log: string[] = [];
  const line = (level: string) => (text: unknown) => void log.push(`${level}: ${String(text)}`);
  const logger = { warn: line('warn'), error: line('error') };
  const calls: unknown[] = [];
  const record = (name: string) => async (_lease: unknown, how: unknown) => {
    calls.push(how === undefined ? name : [name, how]);
    return { settled: true, nextDue: false };
  };
  const runtime = new FakeRuntime();
  runtime.random = () => 0;
  const services = {
    logger,
    runtime,
    throttled: { warn: (_subject: string, text: unknown) => logger.warn(text) },
    catalog: { takesElsewhere: () => elsewhere, refresh: async () => {} },
    store: { fail: record('fail'), release: record('release') },
    dispatcher: {
      dispatch: async () => {
        if (closing) run.abandon();
        throw thrown;
      },
    },
    bodies: { decode: () => Buffer.alloc(0) },
    observers: NO_OBSERVERS,
  } as unknown as AttemptServices;
  const delivery = { id: 'e', company: 'c', handler: 'h', attempt } as ClaimedDelivery;
  const policy = { concurrency: 1, timeoutMs: 1000, retry: fixed([500, 700]) };
  const run = new Attempt(delivery, policy, services, {} as PaymentEvent);
  let slotFreeAtMs = -1;
  const startedAt = runtime.monotonic();
  const ended = run.run(() => (slotFreeAtMs = runtime.monotonic() - startedAt));
  await turns();
  runtime.advance(1000);
  const { retryInMs } = await ended;
  return { retryInMs, slotFreeAtMs, call: calls[0], log };
}

describe('the settlement of an Attempt', () => {
  it('IN-18 a delivery is retried according to the schedule, and is dead after the last attempt', async () => {
    expect(await settleFailure(new Error('no'))).toMatchObject({
      call: ['fail', { error: 'Error: no', retryInMs: 500 }],
      retryInMs: 500,
    });
    expect((await settleFailure(new Error('no'), { attempt: 2 })).retryInMs).toBe(700);
    const last = await settleFailure(new Error('no'), { attempt: 3 });
    expect(last.call).toMatchObject(['fail', { error: 'Error: no', retryInMs: null }]);
    expect(last.log[0]).toMatch(
      /^error: Delivery of event e .* failed \(attempt 3 of 3\) and is dead/,
    );
  });

  it('IN-18 an unrecoverable failure makes the delivery dead at once', async () => {
    expect((await settleFailure(new UnrecoverableError('no'))).call).toMatchObject([
      'fail',
      { retryInMs: null },
    ]);
  });

  it('IN-24 a failure while the application closes releases the delivery and is not counted', async () => {
    expect((await settleFailure(new Error('no'), { closing: true })).call).toBe('release');
  });

  it('an attempt fails and is retried, whatever value its handler throws', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [proxy, null, 'text', 5, () => {}, Object.create(null)]) {
      expect((await settleFailure(thrown)).call).toMatchObject(['fail', { retryInMs: 500 }]);
    }
  });

  it('IN-32 if only another version of the handler takes the event type, the delivery is released and its slot stays taken', async () => {
    const result = await settleFailure(new OtherVersionError('h', 'refund'));
    expect(result).toMatchObject({ call: 'release', retryInMs: null, slotFreeAtMs: 1000 });
    expect(result.log[0]).toMatch(/^warn: Delivery of event e .* is left to another version/);
  });

  it('IN-32 an attempt fails if no version of the handler takes the event type any more', async () => {
    const result = await settleFailure(new OtherVersionError('h', 'refund'), { elsewhere: false });
    expect(result).toMatchObject({ retryInMs: 500, slotFreeAtMs: 0 });
    expect(result.log[0]).toContain('does not handle the event type "refund"');
  });
});
