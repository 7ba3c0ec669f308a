import { Matches } from 'class-validator';
import { IsAmount } from '../amount.js';

const REFERENCE = /^(?!\.)[\w.~-]{1,64}$/;

/** Body of `POST /api/orders`, such as `{ "reference": "order-77", "amount": 1500 }`. Other fields are rejected. */
export class CreateOrderDto {
  /** The merchant's name for the order. The payments service calls this name `externalReference`. */
  @Matches(REFERENCE, {
    message:
      'reference must be 1 to 64 characters of A-Z a-z 0-9 . _ ~ -, and must not start with a dot',
  })
  reference!: string;

  /** The amount to pay, as a JSON number. */
  @IsAmount()
  amount!: number;
}

/**
 * The reason why an order has no payment: the payment was declined, or the service did not report a payment in time.
 */
export type OrderProblem = 'declined' | 'overdue';

/** An order as the shop stores it. The payments of the order are in the ledger. */
export interface Order {
  /** The merchant's name for the order. The payments service calls this name `externalReference`. */
  readonly reference: string;
  readonly amount: number;
  /** Address of the checkout page, or `null` until the shop has received the response with the invoice. */
  readonly checkoutUrl: string | null;
  readonly problem: OrderProblem | null;
}

/** An order, with the amounts of its payments in the order in which they were recorded. */
export interface OrderWithPayments extends Order {
  readonly payments: readonly number[];
  /** Whether the module found a payment of the order by asking the service, because no webhook request had arrived. */
  readonly foundByPoll: boolean;
}

/** An order as the API returns it. */
export interface OrderView extends Pick<Order, 'reference' | 'amount' | 'checkoutUrl'> {
  /**
   * `paid` if the payments of the order cover its amount. `overdue` means that the result of the payment is unknown.
   * `overdue` does not mean that the payment failed.
   */
  readonly status: 'pending' | 'paid' | OrderProblem;
  /** Present if the shop found a payment by asking the service, because no webhook request had arrived. */
  readonly foundByPoll?: true;
  /** Sum of the payments of the order. Omitted if the sum is 0 or equal to the amount of the order. */
  readonly amountPaid?: number;
}
