import { createHmac, randomBytes } from 'node:crypto';
import type { ConsoleRuntime } from './console-options.js';

/** Wrong passwords of one name that cause no delay; one is forgotten every {@link FORGET_MS}. */
const FREE = 10;
const FORGET_MS = 6_000;
/** Each further wrong password delays the next check by {@link STEP_MS} more, up to {@link LONGEST_MS}. */
const STEP_MS = 100;
const LONGEST_MS = 3_000;
const MOST_WRONG = FREE + LONGEST_MS / STEP_MS;
/** Attempts that wait or are checked at the same time: of one name, and of all names. */
const PLACES_PER_NAME = 60;
const PLACES = 240;
/** Names and networks are counted by their keyed hashes, so that made-up ones take no further memory. */
const NAMES = 1_024;
const NETWORKS = 2 ** 18;
/** The wrong passwords of every network are halved this often. */
const HALVE_MS = 300_000;
/** Pairs of name and network that signed in: how many are remembered, and how long after the last time. */
const SIGNED_IN = 1_000;
const SIGNED_IN_MS = 12 * 3_600_000;
/** Checks of one such pair at the same time: a page loads its files in parallel. */
const PARALLEL = 50;

/** An attempt whose password may be checked now. */
export interface AdmittedAttempt {
  /** Reports the result of the check; `undefined` if the check failed. Call it once. */
  end(right: boolean | undefined): void;
}

interface WrongCount {
  wrong: number;
  at: number;
}

interface SignedIn extends WrongCount {
  underWay: number;
  lastMs: number;
}

interface Name extends WrongCount {
  underWay: number;
}

interface Attempt {
  readonly name: Name;
  /** Indexes of the networks that the request came through. */
  readonly networks: ReadonlySet<number>;
  /** Gives the place of a waiting attempt to another one; `null` as soon as the check has begun. */
  displace: (() => void) | null;
}

/**
 * Limits how fast passwords are guessed, per user name over all clients, without locking the right password out.
 *
 * Up to 10 wrong passwords per minute of one name are checked at once. Above it, each check waits: 0.1 s, 0.2 s and so
 * on up to 3 s, whether the password is right or wrong. At most 60 attempts of a name wait or are checked, so at most
 * 1,200 are checked per minute.
 * If all places are taken, an attempt takes the place of a waiting one whose network sent more wrong passwords in the
 * last minutes; if there is none, it is refused without a check.
 *
 * A client whose network signed in with the same name within 12 hours is not delayed, unless that network itself
 * sends more than 10 wrong passwords a minute. Memory is bounded, and names that exist are treated like all others.
 */
export class SignInLimiter {
  readonly #key = randomBytes(32);
  readonly #names = new Map<number, Name>();
  /** Wrong passwords by network. */
  readonly #networks = new Uint8Array(NETWORKS);
  readonly #attempts = new Set<Attempt>();
  readonly #signedIn = new Map<string, SignedIn>();
  #halvedAt: number;

  constructor(private readonly runtime: ConsoleRuntime) {
    this.#halvedAt = runtime.monotonic();
  }

  /**
   * Resolves when the password may be checked; with `null` if it must not be checked, and the client should retry.
   *
   * @param networks the client's network first, then others that the request came through
   */
  admit(name: string, networks: readonly [string, ...string[]]): Promise<AdmittedAttempt | null> {
    const pair = `${name}\0${networks[0]}`;
    const known = this.#known(pair);
    return known === undefined
      ? this.#asUnknown(name, networks, pair)
      : Promise.resolve(this.#asKnown(known, pair));
  }

  /** The pair; `undefined` if it never signed in, did so too long ago, or sends wrong passwords itself. */
  #known(pair: string): SignedIn | undefined {
    const known = this.#signedIn.get(pair);
    if (known === undefined) return undefined;
    const now = this.runtime.monotonic();
    if (now - known.lastMs >= SIGNED_IN_MS) {
      this.#signedIn.delete(pair);
      return undefined;
    }
    return wrongOf(known, now) < FREE && known.underWay < PARALLEL ? known : undefined;
  }

  #asKnown(known: SignedIn, pair: string): AdmittedAttempt {
    known.underWay += 1;
    return {
      end: (right) => {
        known.underWay -= 1;
        if (right === true) this.#remember(pair);
        if (right === false) countWrong(known, this.runtime.monotonic());
      },
    };
  }

  async #asUnknown(
    name: string,
    networks: readonly string[],
    pair: string,
  ): Promise<AdmittedAttempt | null> {
    const attempt: Attempt = {
      name: this.#nameOf(name),
      networks: new Set(networks.map((network) => this.#hash('network', network) % NETWORKS)),
      displace: null,
    };
    if (!this.#makeRoom(attempt)) return null;
    const delayMs = delayOf(attempt.name, this.runtime.monotonic());
    this.#enter(attempt);
    if (delayMs > 0 && !(await this.#wait(attempt, delayMs))) return null;
    return {
      end: (right) => {
        this.#leave(attempt);
        if (right === true) this.#remember(pair);
        if (right === false) this.#countWrong(attempt);
      },
    };
  }

  /** Whether there is a place for an attempt. If all are taken, it gets that of a waiting attempt of a worse network. */
  #makeRoom(attempt: Attempt): boolean {
    const full = attempt.name.underWay >= PLACES_PER_NAME;
    if (!full && this.#attempts.size < PLACES) return true;
    let wrong = this.#wrongOf(attempt);
    let worst: Attempt | undefined;
    for (const rival of this.#attempts) {
      if (rival.displace === null || (full && rival.name !== attempt.name)) continue;
      const theirs = this.#wrongOf(rival);
      if (theirs <= wrong) continue;
      wrong = theirs;
      worst = rival;
    }
    worst?.displace?.();
    return worst !== undefined;
  }

  /** Wrong passwords of its networks. One that all attempts have in common, a proxy, does not change their order. */
  #wrongOf({ networks }: Attempt): number {
    let wrong = 0;
    for (const network of networks) wrong += this.#networks[network]!;
    return wrong;
  }

  #enter(attempt: Attempt): void {
    this.#attempts.add(attempt);
    attempt.name.underWay += 1;
  }

  #leave(attempt: Attempt): void {
    this.#attempts.delete(attempt);
    attempt.name.underWay -= 1;
  }

  /** Whether the attempt kept its place until its delay was over. */
  #wait(attempt: Attempt, delayMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const stop = this.runtime.schedule(delayMs, () => {
        attempt.displace = null;
        resolve(true);
      });
      attempt.displace = () => {
        stop();
        this.#leave(attempt);
        resolve(false);
      };
    });
  }

  #nameOf(text: string): Name {
    const index = this.#hash('name', text) % NAMES;
    const name = this.#names.get(index) ?? { wrong: 0, at: 0, underWay: 0 };
    this.#names.set(index, name);
    return name;
  }

  #countWrong({ name, networks }: Attempt): void {
    const now = this.runtime.monotonic();
    countWrong(name, now);
    if (now - this.#halvedAt >= HALVE_MS) {
      this.#halvedAt = now;
      for (let index = 0; index < NETWORKS; index += 1) this.#networks[index]! >>= 1;
    }
    for (const network of networks) {
      this.#networks[network] = Math.min(255, this.#networks[network]! + 1);
    }
  }

  #remember(pair: string): void {
    const known = this.#signedIn.get(pair) ?? { wrong: 0, at: 0, lastMs: 0, underWay: 0 };
    known.lastMs = this.runtime.monotonic();
    // The pair that signed in last is the last to be forgotten.
    this.#signedIn.delete(pair);
    this.#signedIn.set(pair, known);
    const [oldest] = this.#signedIn.keys();
    if (this.#signedIn.size > SIGNED_IN && oldest !== undefined) this.#signedIn.delete(oldest);
  }

  #hash(kind: string, text: string): number {
    return createHmac('sha256', this.#key).update(`${kind}\0${text}`).digest().readUInt32BE();
  }
}

function delayOf(name: Name, now: number): number {
  const wrong = Math.ceil(wrongOf(name, now) + name.underWay + 1 - FREE);
  return Math.min(LONGEST_MS, Math.max(0, wrong) * STEP_MS);
}

/** Wrong passwords that are not forgotten yet. */
function wrongOf({ wrong, at }: WrongCount, now: number): number {
  return Math.max(0, wrong - (now - at) / FORGET_MS);
}

function countWrong(count: WrongCount, now: number): void {
  count.wrong = Math.min(MOST_WRONG, wrongOf(count, now) + 1);
  count.at = now;
}
