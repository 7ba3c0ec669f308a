import type { RawAnswer } from './raw-exchange.ts';

/** What one family of attacks came to. */
export interface FamilyReport {
  readonly name: string;
  readonly attempts: number;
  /** Refused attempts by status; `closed` for connections that ended without an answer. */
  readonly refused: Readonly<Record<string, number>>;
  /** Attempts that had to be accepted and were, such as a valid delivery split at a byte. */
  readonly accepted: number;
  readonly wrong: readonly string[];
  /** Events that must have been handled once. */
  readonly events: readonly string[];
  /** Events that may have been handled, at most once. */
  readonly optionalEvents: readonly string[];
}

/** What an attempt must come to. `event`: the key of the event that it delivers. */
export type Expectation =
  // `only`: with one of these statuses; the end of the connection is not enough.
  | { readonly kind: 'refused'; readonly only?: readonly number[] }
  | { readonly kind: 'accepted'; readonly event: string }
  | { readonly kind: 'either'; readonly event?: string };

export const REFUSED: Expectation = { kind: 'refused' };

/** Statuses of 5xx that refuse a request on purpose: not implemented, busy, HTTP version. */
const REFUSALS_5XX = new Set([501, 503, 505]);

/** Counts the attempts of one family and judges their answers. */
export class Tally {
  attempts = 0;
  accepted = 0;
  readonly wrong: string[] = [];
  readonly #refused = new Map<string, number>();
  readonly #events = new Set<string>();
  readonly #optional = new Set<string>();

  /** Judges the answer to a request of one delivery. */
  judge(label: string, { statuses, code, hung }: RawAnswer, expectation: Expectation): void {
    this.attempts += 1;
    const [status] = statuses;
    const shown = `${label}: ${statuses.join(' ') || 'no answer'}${code === undefined ? '' : ` ${code}`}`;
    if (hung) this.wrong.push(`${shown}, and the connection hung`);
    for (const one of statuses) {
      if (one >= 500 && !REFUSALS_5XX.has(one)) this.wrong.push(shown);
    }
    const success = statuses.find((one) => one >= 200 && one < 300);
    if (success === undefined) this.refuse(status === undefined ? 'closed' : String(status));
    else this.accepted += 1;
    if (expectation.kind === 'refused') {
      const { only } = expectation;
      if (only && (status === undefined || !only.includes(status))) this.wrong.push(shown);
      if (success !== undefined) this.wrong.push(`${shown}, but it was invalid`);
      return;
    }
    const { event } = expectation;
    if (event !== undefined && success !== undefined) this.#events.add(event);
    else if (event !== undefined) this.#optional.add(event);
    if (expectation.kind === 'accepted' && success === undefined && status !== 503) {
      this.wrong.push(`${shown}, but it was valid`);
    }
  }

  refuse(status: string): void {
    this.#refused.set(status, (this.#refused.get(status) ?? 0) + 1);
  }

  report(name: string): FamilyReport {
    const { attempts, accepted, wrong } = this;
    return {
      name,
      attempts,
      accepted,
      wrong,
      refused: Object.fromEntries(this.#refused),
      events: [...this.#events],
      optionalEvents: [...this.#optional],
    };
  }
}
