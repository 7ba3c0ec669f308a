import { Matches } from 'class-validator';
import { IsAmount } from '../amount.js';

/** What `POST /orders` takes, and nothing else. */
export class NewOrder {
  /** The merchant's own name for the order. The service calls it `externalReference`. */
  @Matches(/^(?!\.)[\w.~-]{1,64}$/, {
    message:
      'reference must be 1 to 64 characters of A-Z a-z 0-9 . _ ~ -, the first of them not a dot',
  })
  reference!: string;

  /** What is to be paid, as a JSON number. */
  @IsAmount()
  amount!: number;
}
