import { describe, expect, it } from '@jest/globals';
import type { ReportedExpectation } from './application-protocol.js';
import { checkPayments } from './payment-checker.js';
import type { PaymentObservations } from './payment-checker.js';
import type { PlannedPayment } from './payment-plan.js';
import type { ServiceTransaction } from './payments-service.js';

const payment = (reference: string, outcome: PlannedPayment['outcome']): PlannedPayment => ({
  reference,
  outcome,
  atMs: 0,
  target: 0,
  delayMs: 1,
  losesResponse: false,
  webhook: false,
  contradicts: true,
  actions: null,
});
const PAID = payment('payment-0', 'paid');
const DECLINED = payment('payment-1', 'declined');
const NEVER = payment('overdue-2', 'never');
const UNREQUESTED = payment('payment-3', 'paid');

const transaction = (of: PlannedPayment, more: object = {}): ServiceTransaction => ({
  transactionId: `t-${of.reference}`,
  payment: of,
  status: 'complete',
  contradicted: false,
  ...more,
});
const expectation = (reference: string, more: object = {}): ReportedExpectation => ({
  reference,
  state: 'fulfilled',
  fulfilledBy: 'poll',
  eventType: 'transaction.completed',
  contradiction: null,
  polls: 1,
  ...more,
});
const effect = (handler: string, of: string) => ({
  handler,
  event: 'e',
  transaction: of,
  attempt: 'a',
});

const GOOD: PaymentObservations = {
  payments: [PAID, DECLINED, NEVER, UNREQUESTED],
  transactions: [transaction(PAID), transaction(DECLINED), transaction(NEVER)],
  expectations: [
    expectation('payment-0'),
    expectation('payment-1', { eventType: 'transaction.declined' }),
    expectation('overdue-2', { state: 'overdue', fulfilledBy: null, eventType: null }),
    expectation('payment-3', { state: 'waiting', fulfilledBy: null, eventType: null }),
  ],
  effects: [
    ...['audit', 'book', 'notify', 'points'].map((handler) => effect(handler, 't-payment-0')),
    ...['audit', 'book', 'declined'].map((handler) => effect(handler, 't-payment-1')),
    effect('overdue', 'overdue-2'),
  ],
  webhooks: false,
};

const withExpectation = (index: number, more: object) => ({
  expectations: GOOD.expectations.map((one, at) => (at === index ? { ...one, ...more } : one)),
});

describe('checkPayments()', () => {
  it('EX-13 checkPayments() finds no violation if no promise was broken', () => {
    expect(checkPayments(GOOD)).toEqual([]);
  });

  it('EX-13 checkPayments() accepts that a payment becomes overdue if no process requested it', () => {
    const effects = [...GOOD.effects, effect('overdue', 'payment-3')];
    expect(checkPayments({ ...GOOD, effects })).toEqual([]);
  });

  it.each<[string, Partial<PaymentObservations>, string[]]>([
    [
      'a paid transaction without an expectation',
      { expectations: GOOD.expectations.slice(1), effects: GOOD.effects.slice(4) },
      ['not-expected', 'lost'],
    ],
    [
      'a second transaction of one purchase',
      { transactions: [...GOOD.transactions, transaction(PAID, { transactionId: 'other' })] },
      ['requested-twice'],
    ],
    ['a missing effect', { effects: GOOD.effects.slice(1) }, ['lost']],
    [
      'a second effect of one handler',
      { effects: [...GOOD.effects, effect('book', 't-payment-0')] },
      ['doubled'],
    ],
    [
      'a paid payment that is handled as declined',
      { effects: [...GOOD.effects, effect('declined', 't-payment-0')] },
      ['declared-failed'],
    ],
    [
      'a payment without a request that is handled as declined',
      { effects: [...GOOD.effects, effect('declined', 'payment-3')] },
      ['declared-failed'],
    ],
    [
      'a paid payment that is handled as overdue',
      { effects: [...GOOD.effects, effect('overdue', 'payment-0')] },
      ['unexpected-effect'],
    ],
    [
      'a paid payment whose expectation still waits',
      withExpectation(0, { state: 'waiting' }),
      ['not-fulfilled'],
    ],
    [
      'a webhook request although the service sent none',
      withExpectation(0, { fulfilledBy: 'webhook' }),
      ['not-fulfilled'],
    ],
    [
      'a declined payment that is fulfilled as paid',
      withExpectation(1, { eventType: 'transaction.completed' }),
      ['not-fulfilled'],
    ],
    [
      'an unpaid payment that is not overdue',
      withExpectation(2, { state: 'waiting' }),
      ['not-overdue'],
    ],
    [
      'a contradiction that the expectation does not show',
      {
        transactions: [transaction(PAID, { contradicted: true }), ...GOOD.transactions.slice(1)],
      },
      ['missing-contradiction'],
    ],
  ])('EX-13 checkPayments() reports %s', (_, changes, expected) => {
    expect(checkPayments({ ...GOOD, ...changes }).map(({ rule }) => rule)).toEqual(expected);
  });
});
