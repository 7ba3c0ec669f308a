import { badRequest } from './console-refusal.js';

type Source = 'query' | 'body';

const CONTROL = /\p{Cc}/u;
const TIME =
  /^[12]\d{3}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/**
 * The named values of a query or a JSON body, read one by one and strictly. Each reader answers `undefined` where
 * the value is not there, and throws {@link badRequest} where it is not what it should be.
 */
export class RequestFields {
  readonly #values: ReadonlyMap<string, unknown>;

  private constructor(
    values: Iterable<readonly [string, unknown]>,
    private readonly source: Source,
    private readonly prefix: string,
    known: readonly string[],
  ) {
    const entries = [...values];
    for (const [name] of entries) {
      if (known.includes(name)) continue;
      const shown = JSON.stringify(prefix + name.slice(0, 40));
      throw badRequest(`There is no ${shown} in the ${source}. There may be: ${known.join(', ')}.`);
    }
    this.#values = new Map(entries);
  }

  /** An empty value is one that was not given, as a form sends it. */
  static ofQuery(query: URLSearchParams, known: readonly string[]): RequestFields {
    const twice = [...query.keys()].find((name) => query.getAll(name).length > 1);
    if (twice !== undefined) {
      const shown = JSON.stringify(twice.slice(0, 40));
      throw badRequest(`${shown} stands more than once in the query: give it once.`);
    }
    const given = [...query].filter(([, value]) => value !== '');
    return new RequestFields(given, 'query', '', known);
  }

  static ofBody(body: unknown, known: readonly string[], prefix = ''): RequestFields {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      const what = prefix === '' ? 'The body' : `"${prefix.replace(/\.$/, '')}"`;
      throw badRequest(`${what} must be a JSON object with: ${known.join(', ')}.`);
    }
    return new RequestFields(Object.entries(body), 'body', prefix, known);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  text(name: string, { max, pattern }: { max: number; pattern?: RegExp }): string | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'string' || value === '' || value.length > max || CONTROL.test(value)) {
      throw this.#wrong(name, `a text of 1 to ${max} characters, none a control character`);
    }
    if (pattern !== undefined && !pattern.test(value)) {
      throw this.#wrong(name, `of the form ${pattern.source}`);
    }
    return value;
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    const chosen = choices.find((choice) => choice === value);
    if (chosen === undefined) throw this.#wrong(name, `one of ${choices.join(', ')}`);
    return chosen;
  }

  whole(name: string, { min, max }: { min: number; max: number }): number | undefined {
    const given = this.#values.get(name);
    if (given === undefined) return undefined;
    const digits = this.source === 'query' && typeof given === 'string' && /^\d{1,9}$/.test(given);
    const value = digits ? Number(given) : given;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
      throw this.#wrong(name, `a whole number from ${min} to ${max}`);
    }
    return value;
  }

  /** A number above 0, in a body. */
  rate(name: string, { max }: { max: number }): number | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !(value > 0 && value <= max)) {
      throw this.#wrong(name, `a number above 0, at most ${max}`);
    }
    return value;
  }

  flag(name: string): boolean | undefined {
    const value = this.#values.get(name);
    if (value !== undefined && typeof value !== 'boolean') {
      throw this.#wrong(name, 'true or false');
    }
    return value;
  }

  /** An ISO 8601 date, or a time with its zone. */
  time(name: string): Date | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    const time = typeof value === 'string' && TIME.test(value) ? new Date(value) : undefined;
    // V8 makes a day in March of the 30th of February.
    const day = typeof value === 'string' ? value.slice(0, 10) : '';
    if (
      time === undefined ||
      Number.isNaN(time.getTime()) ||
      !new Date(`${day}T00:00Z`).toISOString().startsWith(day)
    ) {
      throw this.#wrong(name, 'a time such as 2026-11-20T08:00:00Z');
    }
    return time;
  }

  /** What stands under a name, to be read on its own. */
  raw(name: string): unknown {
    return this.#values.get(name);
  }

  #wrong(name: string, what: string): Error {
    return badRequest(`"${this.prefix}${name}" must be ${what}.`);
  }
}
