import { ValidateBy } from 'class-validator';

const MAX = 1_000_000_000_000;

/** Whether a value can be asked for: a number above 0, at most a million million, of whole cents. */
export function isAmount(value: unknown): value is number {
  return (
    typeof value === 'number' &&
    value > 0 &&
    value <= MAX &&
    // Not class-validator's own count of decimal places, which trips over 1e-7.
    cents(value) / 100 === value
  );
}

/** {@link isAmount} as a rule of class-validator. */
export function IsAmount(): PropertyDecorator {
  const message = `$property must be a number above 0 and at most ${MAX}, with at most 2 decimals`;
  return ValidateBy({ name: 'isAmount', validator: { validate: isAmount } }, { message });
}

/** An amount in cents: sums and comparisons are made in whole numbers, where 0.1 and 0.2 make 0.3. */
export function cents(amount: number): number {
  return Math.round(amount * 100);
}
