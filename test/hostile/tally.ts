import type { ExchangeResult } from './raw-exchange.ts';

/** Result of one family of attacks. */
export interface FamilyReport {
  readonly name: string;
  readonly attempts: number;
  /** Number of rejected attempts by status; `closed` for connections that ended without a response. */
  readonly rejected: Readonly<Record<string, number>>;
  /** Number of attempts with a response from 200 to 299, such as a valid request that was split at a byte. */
  readonly accepted: number;
  readonly wrong: readonly string[];
  /** Events that must have been handled once. */
  readonly events: readonly string[];
  /** Events that may have been handled, at most once. */
  readonly optionalEvents: readonly string[];
}

/** Expected result of an attempt. `event` is the key of the event in the request. */
export type Expectation =
  // `only`: the status must be one of these, and closing the connection is not enough.
  | { readonly kind: 'rejected'; readonly only?: readonly number[] }
  | { readonly kind: 'accepted'; readonly event: string }
  | { readonly kind: 'either'; readonly event?: string };

export const REJECTED: Expectation = { kind: 'rejected' };

/** 5xx statuses that a server sends intentionally: not implemented, busy, unsupported HTTP version. */
const INTENDED_5XX = new Set([501, 503, 505]);

/** Counts the attempts of one family and checks their responses. */
export class Tally {
  attempts = 0;
  accepted = 0;
  readonly wrong: string[] = [];
  readonly #rejected = new Map<string, number>();
  readonly #events = new Set<string>();
  readonly #optional = new Set<string>();

  /** Counts an attempt and checks its responses against the expectation. */
  check(label: string, { statuses, code, hung }: ExchangeResult, expectation: Expectation): void {
    this.attempts += 1;
    const [status] = statuses;
    const shown = `${label}: ${statuses.join(' ') || 'no response'}${code === undefined ? '' : ` ${code}`}`;
    if (hung) this.wrong.push(`${shown}, and the connection hung`);
    for (const sent of statuses) {
      if (sent >= 500 && !INTENDED_5XX.has(sent)) this.wrong.push(shown);
    }
    const success = statuses.find((sent) => sent >= 200 && sent < 300);
    if (success === undefined)
      this.countRejection(status === undefined ? 'closed' : String(status));
    else this.accepted += 1;
    if (expectation.kind === 'rejected') {
      const { only } = expectation;
      if (only && (status === undefined || !only.includes(status))) this.wrong.push(shown);
      if (success !== undefined) this.wrong.push(`${shown}, but the request was invalid`);
      return;
    }
    const { event } = expectation;
    if (event !== undefined && success !== undefined) this.#events.add(event);
    else if (event !== undefined) this.#optional.add(event);
    if (expectation.kind === 'accepted' && success === undefined && status !== 503) {
      this.wrong.push(`${shown}, but the request was valid`);
    }
  }

  countRejection(status: string): void {
    this.#rejected.set(status, (this.#rejected.get(status) ?? 0) + 1);
  }

  report(name: string): FamilyReport {
    const { attempts, accepted, wrong } = this;
    return {
      name,
      attempts,
      accepted,
      wrong,
      rejected: Object.fromEntries(this.#rejected),
      events: [...this.#events],
      optionalEvents: [...this.#optional],
    };
  }
}
