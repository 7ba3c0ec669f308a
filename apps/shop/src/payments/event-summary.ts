import type { EventSummary, PaymentEvent } from 'nestjs-payments';
import { CURRENCY, isAmount } from '../amount.js';

/** What the console lists of an event: its order and its amount, with the currency that the service's fields lack. */
export function summaryOf({ data }: PaymentEvent): EventSummary {
  const { externalReference, reference = externalReference, amount } = data;
  return {
    reference: typeof reference === 'string' ? reference : null,
    ...(isAmount(amount) && { amount: amount.toFixed(2), currency: CURRENCY }),
  };
}
