import { DEFAULT_COMPANY } from '../companies/company.js';
import type { PaymentEventContext } from '../events/payment-event.js';
import { commitUnsupported } from '../inbox/memory/memory-inbox.js';

/**
 * Builds a complete {@link PaymentEventContext} for the unit test of a handler. Every field can be given.
 *
 * Without `commit`, `context.commit()` rejects with `commit_unsupported`, as it does with the memory inbox.
 *
 * @typeParam Tx the transaction of your inbox, for example `PostgresTransaction`.
 * @param fields what differs from the first attempt of company `default`: handler `transaction.completed#handle`,
 *   received now, an empty JSON object as `raw`, `newerHandled: false`, and a signal that is not aborted.
 * @example
 * ```ts
 * await orders.markPaid(paymentEvent('transaction.completed'), handlerContext({ attempt: 2 }));
 *
 * const tx = { query: async () => ({ rows: [] }) } as unknown as PostgresTransaction;
 * const context = handlerContext<PostgresTransaction>({ commit: async (work) => work(tx) });
 * ```
 */
export function handlerContext<Tx = unknown>(
  fields: Partial<PaymentEventContext<Tx>> = {},
): PaymentEventContext<Tx> {
  return {
    company: DEFAULT_COMPANY,
    handler: 'transaction.completed#handle',
    attempt: 1,
    receivedAt: new Date(),
    raw: Buffer.from('{}'),
    newerHandled: false,
    signal: new AbortController().signal,
    commit: () => Promise.reject(commitUnsupported()),
    ...fields,
  };
}
