/** An order as it is stored. Its payments are in the ledger. */
export interface Order {
  /** The merchant's name for the order. The payments service calls it `externalReference`. */
  readonly reference: string;
  readonly amount: number;
  /** Address of the checkout page, or `null` until the payments service has created the invoice. */
  readonly checkoutUrl: string | null;
}

/** An order with the amounts of its payments, oldest first. */
export interface OrderWithPayments extends Order {
  readonly payments: readonly number[];
}

/** An order as the API returns it. */
export interface OrderView extends Order {
  /** `paid` if the payments of the order cover its amount. */
  readonly status: 'pending' | 'paid';
  /** Sum of the payments. Present only if it is neither 0 nor the amount of the order. */
  readonly amountPaid?: number;
}
