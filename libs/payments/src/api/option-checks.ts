import type { PaymentsError } from '../errors/payments-error.js';
import { optionsInvalid, shown } from '../errors/options-invalid.js';

/** The `options_invalid` error for one option. Its message is `"<name>" <problem>; <fix>.` */
export function optionInvalid(name: string, problem: string, fix: string): PaymentsError {
  return optionsInvalid(`"${name}" ${problem}; ${fix}.`);
}

/** The name of a header in lower case, or `undefined` if none is given. */
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

/** A function, or `undefined` if none is given. */
export function functionOption<F>(name: string, value: F | undefined): F | undefined {
  if (value === undefined || typeof value === 'function') return value;
  throw optionInvalid(name, `is ${shown(value)}`, 'give a function, or leave it out');
}
