import type { EventSummary, PaymentEvent } from 'nestjs-payments';
import { CURRENCY, isAmount } from '../amount.js';

/**
 * Returns the summary of an event for the lists of the console: the reference of the order, and the amount with its
 * currency. The service's fields do not contain the currency.
 */
export function summaryOf({ data }: PaymentEvent): EventSummary {
  const { externalReference, reference = externalReference, amount } = data;
  return {
    reference: typeof reference === 'string' ? reference : null,
    ...(isAmount(amount) && { amount: amount.toFixed(2), currency: CURRENCY }),
  };
}
