import { PaymentsError } from './payments.errors.js';

/** Bounds of a number option, and what it is when nothing is given. */
export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** What is counted, for the message: `milliseconds`, `bytes`. */
  readonly unit: string;
}

/**
 * A whole number within its bounds.
 *
 * @throws PaymentsError `options_invalid`, naming option, unit, bounds and what was given.
 */
export function integerOption(name: string, value: unknown, bounds: IntegerBounds): number {
  if (value === undefined) return bounds.default;
  const { min, max, unit } = bounds;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    const given = typeof value === 'number' ? String(value) : `a ${typeof value}`;
    throw optionsInvalid(
      `"${name}" must be a whole number of ${unit} from ${min} to ${max}; it is ${given}. ` +
        `Leave it out for ${bounds.default}.`,
    );
  }
  return value;
}

/** The error of an option that is missing or wrong. The message names option, unit and mend. */
export function optionsInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsModule: ${message}`);
}
