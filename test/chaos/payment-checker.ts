import type { ReportedExpectation } from './application-protocol.js';
import type { Effect } from './chaos-store.js';
import { NEW_HANDLER } from './event-plan.js';
import type { PlannedPayment } from './payment-plan.js';
import type { ServiceTransaction } from './payments-service.js';

/** Everything observed about the expected payments of a chaos run. */
export interface PaymentObservations {
  readonly payments: readonly PlannedPayment[];
  readonly transactions: readonly ServiceTransaction[];
  readonly expectations: readonly ReportedExpectation[];
  readonly effects: readonly Effect[];
  /** Whether the service sent webhook requests. */
  readonly webhooks: boolean;
}

/**
 * - `not-expected`: a transaction exists at the service without an expectation.
 * - `requested-twice`: the application requested a payment twice.
 * - `lost`: a paid or declined payment has no effect of one of its handlers.
 * - `doubled`: a payment has two effects of one handler, whether polls or webhook requests reported it.
 * - `declared-failed`: a payment that was not declined has an effect of a declined payment.
 * - `unexpected-effect`: a payment has an effect of a handler that must not have one.
 * - `not-fulfilled`: a paid or declined payment is not fulfilled, or is fulfilled by the wrong event.
 * - `not-overdue`: the schedule of an unpaid payment has ended, and the payment is not overdue.
 * - `missing-contradiction`: a poll contradicted a handled webhook request, and the expectation does not show it.
 */
export type PaymentRule =
  | 'not-expected'
  | 'requested-twice'
  | 'lost'
  | 'doubled'
  | 'declared-failed'
  | 'unexpected-effect'
  | 'not-fulfilled'
  | 'not-overdue'
  | 'missing-contradiction';

/** A rule that a payment broke. */
export interface PaymentViolation {
  readonly rule: PaymentRule;
  readonly detail: string;
}

const HANDLERS = {
  paid: ['audit', 'book', 'notify'],
  declined: ['audit', 'book', 'declined'],
  never: ['overdue'],
} as const;

/** Returns every rule that the payments of the chaos run broke. */
export function checkPayments(observed: PaymentObservations): PaymentViolation[] {
  const expectations = new Map(observed.expectations.map((one) => [one.reference, one]));
  const transactions = Map.groupBy(observed.transactions, ({ payment }) => payment.reference);
  const effects = Map.groupBy(observed.effects, ({ transaction }) => transaction);
  return observed.payments.flatMap((payment) => {
    const { reference } = payment;
    const own = transactions.get(reference) ?? [];
    const ids = own.map(({ transactionId }) => transactionId);
    const found = [reference, ...ids].flatMap((id) => effects.get(id) ?? []);
    return checkPayment(payment, own, expectations.get(reference), found, observed);
  });
}

function checkPayment(
  payment: PlannedPayment,
  transactions: readonly ServiceTransaction[],
  expectation: ReportedExpectation | undefined,
  effects: readonly Effect[],
  { webhooks }: PaymentObservations,
): PaymentViolation[] {
  const { reference, outcome, contradicts } = payment;
  const found: PaymentViolation[] = [];
  const add = (rule: PaymentRule, detail: string): void => {
    found.push({ rule, detail: `${reference} (${outcome}): ${detail}` });
  };
  // A process was killed before it stored the purchase, or between the expectation and the request, so nobody can pay.
  const isOpen = transactions.length === 0 && outcome !== 'never';
  if (expectation === undefined && transactions.length > 0) add('not-expected', 'no expectation');
  if (transactions.length > 1) add('requested-twice', `${transactions.length} transactions`);
  const required = isOpen || expectation === undefined ? [] : HANDLERS[outcome];
  if (expectation === undefined && transactions.length > 0) add('lost', 'no process asks for it');
  const counts = Map.groupBy(effects, ({ handler }) => handler);
  for (const handler of required) {
    if (!counts.has(handler)) add('lost', `no effect of ${handler}`);
  }
  for (const [handler, { length }] of counts) {
    const isNew = handler === NEW_HANDLER && outcome === 'paid';
    // The schedule of a payment that was not requested can end during a long run.
    const isUnpaid = handler === 'overdue' && isOpen;
    if (length > 1) add('doubled', `${length} effects of ${handler}`);
    if (isNew || isUnpaid || (required as readonly string[]).includes(handler)) continue;
    add(handler === 'declined' ? 'declared-failed' : 'unexpected-effect', `effect of ${handler}`);
  }
  if (expectation === undefined || isOpen) return found;
  const { state, fulfilledBy, eventType, contradiction } = expectation;
  if (outcome === 'never') {
    if (state !== 'overdue') add('not-overdue', `it is ${state}`);
    return found;
  }
  const type = outcome === 'paid' ? 'transaction.completed' : 'transaction.declined';
  const by = webhooks ? ['poll', 'webhook'] : ['poll'];
  if (state !== 'fulfilled' || eventType !== type || !by.includes(fulfilledBy!)) {
    add('not-fulfilled', `it is ${state}, by ${fulfilledBy} of ${eventType}`);
  }
  const contradicted = contradicts && transactions.some((one) => one.contradicted);
  if (contradicted && contradiction === null) add('missing-contradiction', 'none is recorded');
  return found;
}
