import { ValidateBy } from 'class-validator';

/** The currency of the shop's prices. The fields of the payments service contain no currency. */
export const CURRENCY = 'KES';
const MAX_AMOUNT = 1_000_000_000_000;
const TWO_DECIMALS = new Intl.NumberFormat('en', {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});

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

/** Formats an amount, such as `KES 1,500.00`, with a no-break space. The scripts of the pages use the same format. */
export function formatAmount(amount: number): string {
  return `${CURRENCY}\u00a0${TWO_DECIMALS.format(amount)}`;
}

/** Converts an amount to cents. Sums and comparisons of whole numbers are exact, but 0.1 + 0.2 is not 0.3. */
export function toCents(amount: number): number {
  return Math.round(amount * 100);
}
