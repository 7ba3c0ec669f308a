import { describe, expect, it } from '@jest/globals';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import { fixed } from '../../events/retry-schedule.js';
import { UnrecoverableError } from '../../errors/payments-error.js';
import { settleActionFor } from './settle-attempt.js';
import type { EndedAttempt } from './settle-attempt.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';

/** Settles an attempt whose handler threw `thrown`. Returns the call of the store and the log. */
function settleFailure(thrown: unknown, { attempt = 1, closing = false, elsewhere = true } = {}) {
  const log: string[] = [];
  const line = (level: string) => (text: string) => void log.push(`${level}: ${text}`);
  const logger = { warn: line('warn'), error: line('error') };
  const services = {
    logger,
    throttled: { warn: (_subject: string, text: string) => logger.warn(text) },
    runtime: { random: () => 0 },
    catalog: { takesElsewhere: () => elsewhere },
  } as unknown as EndedAttempt['services'];
  const delivery = { handler: 'h', attempt } as ClaimedDelivery;
  const retry = fixed([500, 700]);
  const action = settleActionFor(
    { thrown },
    { delivery, name: 'd', retry, closing, services, wait: async () => {} },
  );
  const calls: unknown[] = [];
  const record = (name: string) => async (_lease: unknown, how: unknown) => {
    calls.push(how === undefined ? name : [name, how]);
    return { settled: true, nextDue: false };
  };
  const store = {
    fail: record('fail'),
    release: record('release'),
  } as unknown as InboxStore;
  void action.write(store, delivery);
  action.log();
  return { ...action, call: calls[0], log };
}

describe('settleActionFor', () => {
  it('IN-18 a failed attempt is retried by the schedule, and the delivery is dead after the last', () => {
    expect(settleFailure(new Error('no'))).toMatchObject({
      call: ['fail', { error: 'Error: no', retryInMs: 500 }],
      retryInMs: 500,
    });
    expect(settleFailure(new Error('no'), { attempt: 2 }).retryInMs).toBe(700);
    const last = settleFailure(new Error('no'), { attempt: 3 });
    expect(last.call).toEqual(['fail', { error: 'Error: no', retryInMs: null }]);
    expect(last.log[0]).toMatch(/^error: Delivery d failed \(attempt 3 of 3\) and is dead/);
  });

  it('IN-18 an unrecoverable failure makes the delivery dead at once', () => {
    expect(settleFailure(new UnrecoverableError('no')).call).toMatchObject([
      'fail',
      { retryInMs: null },
    ]);
  });

  it('IN-24 a failure while the application closes releases the delivery without a charge', () => {
    expect(settleFailure(new Error('no'), { closing: true }).call).toBe('release');
  });

  it('a handler may throw any value', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [proxy, null, 'text', 5, () => {}, Object.create(null)]) {
      expect(settleFailure(thrown).call).toMatchObject(['fail', { retryInMs: 500 }]);
    }
  });

  it('IN-32 a type that only another version takes releases the delivery, and the slot stays taken', () => {
    const result = settleFailure(new OtherVersionError('h', 'refund'));
    expect(result).toMatchObject({ call: 'release', retryInMs: null, keepSlotMs: 1000 });
    expect(result.log[0]).toMatch(/^warn: Delivery d is left to another version/);
  });

  it('IN-32 a type that no version takes any more fails the attempt', () => {
    const result = settleFailure(new OtherVersionError('h', 'refund'), { elsewhere: false });
    expect(result).toMatchObject({ retryInMs: 500, keepSlotMs: 0 });
    expect(result.log[0]).toContain('does not handle the event type "refund"');
  });
});
