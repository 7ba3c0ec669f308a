import { Matches } from 'class-validator';
import { IsAmount } from '../amount.js';

const REFERENCE = /^(?!\.)[\w.~-]{1,64}$/;

/** Body of `POST /api/orders`, such as `{ "reference": "order-77", "amount": 1500 }`. Other fields are rejected. */
export class CreateOrderDto {
  /** The merchant's name for the order. The payments service calls it `externalReference`. */
  @Matches(REFERENCE, {
    message:
      'reference must be 1 to 64 characters of A-Z a-z 0-9 . _ ~ -, and must not start with a dot',
  })
  reference!: string;

  /** The amount to pay, as a JSON number. */
  @IsAmount()
  amount!: number;
}
