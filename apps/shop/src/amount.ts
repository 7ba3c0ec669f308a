import { ValidateBy } from 'class-validator';

const MAX_AMOUNT = 1_000_000_000_000;

/** Whether a value is a valid amount: a number of whole cents, above 0 and at most 1,000,000,000,000. */
export function isAmount(value: unknown): value is number {
  return (
    typeof value === 'number' &&
    value > 0 &&
    value <= MAX_AMOUNT &&
    // The IsNumber decorator of class-validator counts the decimal places of 1e-7 wrongly.
    toCents(value) / 100 === value
  );
}

/** {@link isAmount} as a decorator for class-validator. */
export function IsAmount(): PropertyDecorator {
  const message = `$property must be a number above 0 and at most ${MAX_AMOUNT}, with at most 2 decimals`;
  return ValidateBy({ name: 'isAmount', validator: { validate: isAmount } }, { message });
}

/** An amount in cents. Sums and comparisons of whole numbers are exact: 0.1 + 0.2 is not 0.3. */
export function toCents(amount: number): number {
  return Math.round(amount * 100);
}
