import { PaymentsError } from '../payments.errors.js';

/** Bounds of a numeric option. */
export interface NumberBounds {
  /** Its value where the application gives none. */
  default: number;
  min: number;
  max: number;
  /** What is counted: `milliseconds`, `bytes`, `sockets`. */
  unit: string;
}

/** An `options_invalid` error about one option. `mend` completes the sentence "… ; <mend>". */
export function optionInvalid(name: string, problem: string, mend: string): PaymentsError {
  return new PaymentsError('options_invalid', `payments option ${name} ${problem}; ${mend}`);
}

/** A whole number within bounds, or the default where `value` is undefined. */
export function integerOption(name: string, value: unknown, bounds: NumberBounds): number {
  if (value === undefined) return bounds.default;
  const { min, max, unit } = bounds;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw optionInvalid(
    name,
    `is ${shown(value)}`,
    `give a whole number of ${unit} from ${min} to ${max} (default ${bounds.default})`,
  );
}

/** A header's name in lower case, or undefined where none was given. */
export function headerNameOption(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]{1,100}$/.test(value)) {
    return value.toLowerCase();
  }
  throw optionInvalid(
    name,
    `is ${shown(value)}`,
    'give the name of an HTTP header, like x-request-id',
  );
}

/** A function, or undefined where none was given. */
export function functionOption<F>(name: string, value: F | undefined): F | undefined {
  if (value === undefined || typeof value === 'function') return value;
  throw optionInvalid(name, `is ${shown(value)}`, 'give a function, or leave it out');
}

/** Refuses names nobody reads, so that a misspelt option doesn't silently keep its default. */
export function refuseUnknownNames(prefix: string, input: object, known: readonly string[]): void {
  for (const name of Object.keys(input)) {
    if (!known.includes(name)) {
      throw optionInvalid(
        `${prefix}${name}`,
        'is not known',
        `the options here are ${known.join(', ')}`,
      );
    }
  }
}

/** A value as an option's error may show it: short, and never an object's content. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value.length > 40 ? 'a long string' : `'${value}'`;
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    return String(value);
  }
  return Array.isArray(value) ? 'an array' : `of type ${typeof value}`;
}
