import { PaymentsError } from './payments.errors.js';

/** Bounds of a number option, and what it is when nothing is given. */
export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** What is counted, for the message: `milliseconds`, `bytes`. */
  readonly unit: string;
}

/** The error of an option that is missing or wrong. The message names option, unit and mend. */
export function optionsInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsModule: ${message}`);
}

/**
 * A whole number within its bounds, or the default where `value` is undefined.
 *
 * @throws PaymentsError `options_invalid`, naming option, unit, bounds and what was given.
 */
export function integerOption(name: string, value: unknown, bounds: IntegerBounds): number {
  if (value === undefined) return bounds.default;
  const { min, max, unit } = bounds;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    throw optionsInvalid(
      `"${name}" must be a whole number of ${unit} from ${min} to ${max}; it is ${shown(value)}. ` +
        `Leave it out for ${bounds.default}.`,
    );
  }
  return value;
}

/**
 * Refuses names nobody reads, so that a misspelt option doesn't silently keep its default.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function refuseUnknownNames(prefix: string, input: object, known: readonly string[]): void {
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw optionsInvalid(
    `there is no option "${prefix}${unknown}". The options are ${known.join(', ')}.`,
  );
}

/** A value as an option's error may show it: short, and never the content of a text or an object. */
export function shown(value: unknown): string {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    return String(value);
  }
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}
