import type { PaymentsError } from '../payments.errors.js';
import { optionsInvalid, shown } from '../payments.validation.js';

/** An `options_invalid` error about one option. `mend` completes the sentence "… ; <mend>.". */
export function optionInvalid(name: string, problem: string, mend: string): PaymentsError {
  return optionsInvalid(`"${name}" ${problem}; ${mend}.`);
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
