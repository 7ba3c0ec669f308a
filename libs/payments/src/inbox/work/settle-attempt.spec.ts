import { describe, expect, it } from '@jest/globals';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import { fixed } from '../../events/retry-schedule.js';
import { UnrecoverableError } from '../../errors/payments-error.js';
import { settleActionFor } from './settle-attempt.js';
import type { EndedAttempt } from './settle-attempt.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';

/** How an attempt is settled, and what is logged about it. */
function judge(thrown: unknown, { attempt = 1, closing = false, elsewhere = true } = {}) {
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
  it('IN-18 retries by the schedule, and gives up after its last attempt', () => {
    expect(judge(new Error('no'))).toMatchObject({
      call: ['fail', { error: 'Error: no', retryInMs: 500 }],
      retryInMs: 500,
    });
    expect(judge(new Error('no'), { attempt: 2 }).retryInMs).toBe(700);
    const last = judge(new Error('no'), { attempt: 3 });
    expect(last.call).toEqual(['fail', { error: 'Error: no', retryInMs: null }]);
    expect(last.log[0]).toMatch(/^error: Delivery d failed \(attempt 3 of 3\) and is dead/);
  });

  it('IN-18 gives an unrecoverable failure up at once', () => {
    expect(judge(new UnrecoverableError('no')).call).toMatchObject(['fail', { retryInMs: null }]);
  });

  it('IN-24 returns what fails while the application closes, without a charge', () => {
    expect(judge(new Error('no'), { closing: true }).call).toBe('release');
  });

  it('takes anything that can be thrown', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [proxy, null, 'text', 5, () => {}, Object.create(null)]) {
      expect(judge(thrown).call).toMatchObject(['fail', { retryInMs: 500 }]);
    }
  });

  it('IN-32 returns what another version takes, and keeps its place so that the other can claim it', () => {
    const judged = judge(new OtherVersionError('h', 'refund'));
    expect(judged).toMatchObject({ call: 'release', retryInMs: null, keepSlotMs: 1000 });
    expect(judged.log[0]).toMatch(/^warn: Delivery d is left to another version/);
  });

  it('IN-32 fails what no version takes any more', () => {
    const judged = judge(new OtherVersionError('h', 'refund'), { elsewhere: false });
    expect(judged).toMatchObject({ retryInMs: 500, keepSlotMs: 0 });
    expect(judged.log[0]).toContain('does not handle the event type "refund"');
  });
});
