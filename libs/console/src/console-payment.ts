import type { StoredEvent, StoredExpectation } from 'nestjs-payments';
import type { ConsoleInbox } from './console-inbox.js';

/** Maximum number of other names of a payment (transaction ids or references) by which the console finds events. */
const MAX_NAMES = 5;

/** What the inbox knows about a payment. Several transactions may have the same reference. */
export interface ConsolePayment {
  /** The events of the payment, the newest first, without their bodies. */
  readonly events: readonly Omit<StoredEvent, 'raw'>[];
  readonly expectations: readonly StoredExpectation[];
  /** Ids of other transactions with the same reference, at most 100, if `payment` was a transaction id. */
  readonly others: readonly string[];
}

/**
 * Finds a payment by its transaction id or its reference. Some events of the payment may contain only the other of
 * these two names. The function finds these events too, if another event or the expectation contains both names.
 */
export async function findPayment(
  inbox: ConsoleInbox,
  company: string,
  payment: string,
): Promise<ConsolePayment> {
  const find = (name: string) =>
    Promise.all([
      inbox.call((it) => it.eventsOf(name, company)),
      expectationsOf(inbox, company, name),
    ]);
  const [named, expected] = await find(payment);
  const isTransaction =
    named.some(({ orderingKey }) => orderingKey === payment) ||
    expected.some(({ transactionId }) => transactionId === payment);
  const names = new Set(
    isTransaction
      ? [...named, ...expected].map(({ reference }) => reference)
      : [...named.map((one) => one.orderingKey), ...expected.map((one) => one.transactionId)],
  );
  const events = new Map(named.map((event) => [event.id, event]));
  const expectations = new Map(expected.map((one) => [one.reference, one]));
  const others = [...names].filter((name) => name !== null).filter((name) => name !== payment);
  for (const found of await Promise.all(others.slice(0, MAX_NAMES).map(find))) {
    for (const event of found[0]) events.set(event.id, event);
    for (const one of found[1]) expectations.set(one.reference, one);
  }
  const isOfOther = (transaction: string | null): transaction is string =>
    isTransaction && transaction !== null && transaction !== payment;
  const all = [...events.values()].toSorted((a, b) => +b.receivedAt - +a.receivedAt);
  return {
    events: all
      .filter(({ orderingKey }) => !isOfOther(orderingKey))
      .map((event) => ({ ...event, raw: undefined })),
    expectations: [...expectations.values()].filter((one) => !isOfOther(one.transactionId)),
    others: [...new Set(all.map(({ orderingKey }) => orderingKey).filter(isOfOther))],
  };
}

/**
 * Returns the expectations with this reference or transaction id; an empty list if the option `reconcile` is not set.
 */
async function expectationsOf(
  inbox: ConsoleInbox,
  company: string,
  name: string,
): Promise<readonly StoredExpectation[]> {
  if (inbox.expectations === null) return [];
  return inbox.callExpectations(async (them) => {
    const byTransaction = await them.list({ company, transactionId: name });
    const byReference = await them.get(name, { company }).catch((error: unknown) => {
      // A transaction id may contain characters that a reference must not contain.
      if (error instanceof TypeError) return undefined;
      throw error;
    });
    return byReference === undefined
      ? byTransaction.expectations
      : [byReference, ...byTransaction.expectations];
  });
}
