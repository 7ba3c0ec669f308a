import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import { summaryOf } from './event-receiver.js';
import { resolveReceiveOptions } from './receive-options.js';
import type { ReceiveOptions } from './receive-options.js';

const EVENT: PaymentEvent = {
  id: 'event',
  eventType: 'transaction.completed',
  timestamp: '2026-01-01T00:00:00Z',
  data: { transactionId: 'tx', status: 'complete', amount: 350, externalReference: 'order-7' },
  metadata: {},
};

let lines: unknown[];
beforeEach(() => {
  lines = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((line) => void lines.push(line));
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Returns a function that summarizes {@link EVENT} with the option. */
function summarizer(option: unknown, now = () => 0) {
  const { summary } = resolveReceiveOptions({ summary: option } as ReceiveOptions);
  const runtime = { monotonic: now, schedule: () => () => {} };
  const log = new ThrottledLog(new ModuleLogger('PaymentInbox'), runtime);
  return () => summaryOf(EVENT, summary, log);
}

describe('summaryOf', () => {
  it('a failure of the function "summary" is logged once a minute, with the reason', () => {
    let now = 0;
    const summarize = summarizer(
      () => {
        throw new Error('no order');
      },
      () => now,
    );
    for (let count = 0; count < 1000; count += 1) expect(summarize()).toBeNull();
    const line =
      'The function "summary" failed, so lists show an event without its summary: Error: no order.';
    expect(lines).toEqual([line]);
    now = 60_000;
    summarize();
    expect(lines[1]).toBe(`${line} (999 more since the previous line)`);
  });

  it.each([
    ['a promise', async () => ({ reference: 'order-7' }), 'it returned a promise.'],
    ['a text', () => 'order-7', 'it returned a text of 7 characters.'],
  ])(
    'if the function "summary" returns %s, the event has no summary and the reason is logged',
    (_, option, why) => {
      expect(summarizer(option)()).toBeNull();
      expect(lines).toEqual([expect.stringMatching(new RegExp(`: ${why.replace('.', '\\.')}$`))]);
    },
  );

  it('if the function "summary" returns nothing, the event has no summary and nothing is logged', () => {
    expect([summarizer(() => null)(), summarizer(() => {})(), summarizer(null)()]).toEqual([
      null,
      null,
      null,
    ]);
    expect(lines).toEqual([]);
  });

  it('the function "summary" can change its copy of the event without an effect on the original', () => {
    const change = (event: PaymentEvent) => {
      Object.assign(event.data, { transactionId: 'other' });
      return { reference: String(event.data['transactionId']) };
    };
    expect(summarizer(change)()).toMatchObject({ reference: 'other' });
    expect(EVENT.data['transactionId']).toBe('tx');
  });

  it('the option "summary" must be a function or null', () => {
    for (const option of [true, 'reference', {}]) {
      expect(() => resolveReceiveOptions({ summary: option as never })).toThrow(PaymentsError);
    }
  });
});
