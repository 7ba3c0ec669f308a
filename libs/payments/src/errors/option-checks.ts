import { PaymentsError } from './payments-error.js';

/** Creates the error for an option that is missing or wrong. The message should name the option and the fix. */
export function optionsInvalid(message: string, details?: ErrorOptions): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsModule: ${message}`, details);
}

/** Creates the error for an option with a wrong value. The message describes the value without its content. */
export function mustBe(name: string, expected: string, value: unknown, hint = ''): PaymentsError {
  return optionsInvalid(
    `"${name}" must be ${expected}; it is ${shown(value)}.${hint && ` ${hint}`}`,
  );
}

/** Formats a value for an error message: briefly, and never with the content of a string, array or object. */
export function shown(value: unknown): string {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    return String(value);
  }
  if (typeof value === 'string') return `a text of ${value.length} characters`;
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

/**
 * Checks the value of an option. Returns the value, or the default if the value is undefined. Throws `options_invalid`
 * if the value is wrong.
 */
export type OptionCheck<T> = (name: string, value: unknown) => T;

/**
 * One check for each field of the options `T`. With `satisfies OptionChecks<T>`, the compiler reports a field without a
 * check.
 */
export type OptionChecks<T> = { readonly [K in keyof T]-?: OptionCheck<T[K] | undefined> };

/**
 * Throws `options_invalid` for a field that is not in `known`. Otherwise, a misspelt option would silently keep its
 * default.
 */
export function checkNames(prefix: string, given: object, known: object): void {
  for (const field of Object.keys(given)) {
    if (Object.hasOwn(known, field)) continue;
    const [name, names] = [prefix + field, Object.keys(known).join(', ')];
    throw optionsInvalid(`there is no option "${name}". The options are ${names}.`);
  }
}

/**
 * Checks the fields of an options object. The result is frozen and has every field of `checks`. A field without a check
 * is an error.
 */
export function checkFields<C extends Readonly<Record<string, OptionCheck<unknown>>>>(
  name: string,
  input: unknown,
  checks: C,
): { readonly [K in keyof C]: ReturnType<C[K]> } {
  if (typeof input !== 'object' || input === null) {
    throw mustBe(name, 'an object of options', input);
  }
  checkNames(`${name}.`, input, checks);
  const given = input as Readonly<Record<string, unknown>>;
  const fields = Object.entries(checks).map(([field, check]) => [
    field,
    check(`${name}.${field}`, given[field]),
  ]);
  return Object.freeze(Object.fromEntries(fields)) as { readonly [K in keyof C]: ReturnType<C[K]> };
}

export function isWhole(value: unknown, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

interface WholeNumbers {
  readonly min: number;
  readonly max: number;
  readonly unit: string;
}

/** Creates a check for a whole number. Without a default, the check returns `undefined` for a missing value. */
export function whole(numbers: WholeNumbers & { default: number }): OptionCheck<number>;
export function whole(numbers: WholeNumbers): OptionCheck<number | undefined>;
export function whole({
  default: standard,
  min,
  max,
  unit,
}: WholeNumbers & { default?: number }): OptionCheck<number | undefined> {
  return (name, value) => {
    if (value === undefined) return standard;
    if (isWhole(value, min, max)) return value;
    const hint = standard === undefined ? '' : `Leave it out for ${standard}.`;
    throw mustBe(name, `a whole number of ${unit} from ${min} to ${max}`, value, hint);
  };
}

/** Creates a check for one of several texts. The first text is the default. */
export function oneOf<T extends string>(...texts: readonly [T, ...T[]]): OptionCheck<T> {
  const [standard, ...others] = texts.map((text) => `'${text}'`);
  const list = `${[`${standard} (default)`, ...others.slice(0, -1)].join(', ')} or ${others.at(-1)}`;
  return (name, value) => {
    if (value === undefined) return texts[0];
    if (texts.includes(value as T)) return value as T;
    throw mustBe(name, list, value);
  };
}

export function flag(standard: boolean): OptionCheck<boolean> {
  return (name, value) => {
    if (value === undefined) return standard;
    if (typeof value === 'boolean') return value;
    throw mustBe(name, 'true or false', value);
  };
}

/** @param expected what the value must be, for the message */
export function optional<T>(
  expected: string,
  test: (value: T) => boolean,
): OptionCheck<T | undefined> {
  return (name, value) => {
    if (value === undefined || (value !== null && test(value as T))) return value as T | undefined;
    throw mustBe(name, expected, value);
  };
}

/** Whether an option or a variable has no content: not a string, empty, or white space only. */
export function isBlank(value: unknown): boolean {
  return typeof value !== 'string' || value.trim() === '';
}

/**
 * Describes white space or quotes around a secret, for a message that starts with the name of the secret: "ends with a
 * line break. White space …". The text never contains the secret. Returns `undefined` if there is nothing around the
 * secret.
 */
export function surroundingFault(value: string): string | undefined {
  const trimmed = value.trim();
  const faults = [
    value !== value.trimStart() && 'begins with white space',
    value !== value.trimEnd() &&
      (/[\n\r]\s*$/.test(value) ? 'ends with a line break' : 'ends with white space'),
    /^(["'`]).*\1$/s.test(trimmed) && 'is surrounded by quotes',
  ].filter((fault) => fault !== false);
  if (faults.length === 0) return undefined;
  return `${faults.join(' and ')}. White space and quotes around the value are never part of it: remove them.`;
}
