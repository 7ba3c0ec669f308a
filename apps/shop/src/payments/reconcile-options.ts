import type { PaymentTransaction, ReconcileOptions } from 'nestjs-payments';
import type { ShopSettings } from '../shop-config.js';

/**
 * Returns the options with which the payments module asks the service about expected payments. The service documents
 * neither the body of `GET /v1/transactions/{id}` nor a search by reference. Therefore the shop's settings contain the
 * statuses of a transaction and the path of the search.
 */
export function reconcileOptions(settings: ShopSettings): ReconcileOptions {
  const { paidStatus, declinedStatus, findPath, pollScheduleMs } = settings;
  return {
    eventTypes: ['transaction.completed', 'transaction.declined'],
    interpret: (transaction, { reference }) => {
      const { status, amount }: PaymentTransaction = transaction;
      const data = { ...transaction, externalReference: reference };
      if (status === declinedStatus) return { eventType: 'transaction.declined', data };
      if (status !== paidStatus) return typeof status === 'string' ? 'pending' : 'unknown';
      // Without the amount, the shop can't record the payment.
      const hasAmount = typeof amount === 'number' && amount > 0;
      return hasAmount ? { eventType: 'transaction.completed', data } : 'unknown';
    },
    find: async (reference, api, options) => {
      const { transactions } = await api.get<{ transactions: { transactionId: string }[] }>(
        findPath,
        { ...options, query: { externalReference: reference } },
      );
      // `undefined` means that no payment exists. Therefore every response that is not a list with ids is an error.
      if (!Array.isArray(transactions))
        throw new Error('The response has no list of transactions.');
      const [transaction] = transactions;
      if (transaction === undefined) return undefined;
      if (!transaction.transactionId) throw new Error('A transaction in the response has no id.');
      return transaction.transactionId;
    },
    ...(pollScheduleMs === null ? {} : { schedule: pollScheduleMs }),
  };
}
