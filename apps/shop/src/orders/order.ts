/** An order, as it is kept. What was paid for it is in the ledger, and nowhere else. */
export interface Order {
  readonly reference: string;
  readonly amount: number;
  /** Where the customer pays; `null` until the service has created the invoice. */
  readonly checkoutUrl: string | null;
}

/** An order with the amounts booked for it, in the order of booking. */
export interface BookedOrder extends Order {
  readonly payments: readonly number[];
}

/** An order, as it is shown. */
export interface OrderView extends Order {
  /** `paid` once the payments booked for it cover its amount. */
  readonly status: 'pending' | 'paid';
  /** Sum of the payments booked for it, shown only where that is neither nothing nor the amount. */
  readonly amountPaid?: number;
}
