import { createHmac, randomBytes } from 'node:crypto';
import type { ConsoleRuntime } from './console-options.js';

/** Number of wrong passwords of one user name that cause no delay. */
const UNDELAYED = 10;
/** Time in which the count of wrong passwords of a user name decreases by one, in milliseconds. */
const DECREMENT_MS = 6_000;
/** Each further wrong password adds this time to the delay of the next check, in milliseconds. */
const STEP_MS = 100;
const MAX_DELAY_MS = 3_000;
const MAX_WRONG = UNDELAYED + MAX_DELAY_MS / STEP_MS;
/** Maximum number of sign-in attempts of one user name that wait or are checked at the same time. */
const SLOTS_PER_NAME = 60;
/**
 * How many of the {@link SLOTS_PER_NAME} attempts may come from networks that sent {@link SUSPECT} or more wrong
 * passwords in the last minutes.
 */
const SUSPECT_SLOTS = 6;
/** Number of wrong passwords that makes a network suspect. */
const SUSPECT = 10;
/** Maximum number of sign-in attempts of all user names that wait or are checked at the same time. */
const SLOTS = 240;
/**
 * Number of counters for user names. A keyed hash of a name selects its counter, so that invented names need no
 * additional memory.
 */
const NAME_COUNTERS = 1_024;
/** Number of counters for networks. A keyed hash of a network selects its counter. */
const NETWORK_COUNTERS = 2 ** 18;
/** Each time this many milliseconds have passed, the counters of all networks are halved. */
const HALVE_MS = 300_000;
/** Maximum number of rejected clients that the limiter remembers. */
const REJECTED = 10_000;
/** How long a rejected client is remembered, in milliseconds. */
const REJECTED_MS = 60_000;
/** Maximum number of pairs of user name and network whose sign-in is remembered. */
const SIGNED_IN = 1_000;
/** How long a sign-in is remembered, in milliseconds. */
const SIGNED_IN_MS = 12 * 3_600_000;
/**
 * Maximum number of concurrent checks of a remembered pair of user name and network. The limit is not lower, because a
 * page loads its files in parallel.
 */
const PARALLEL = 50;

export interface AdmittedAttempt {
  /**
   * Ends the attempt. Call this function once. `right` is whether the password was right; `undefined` if the check
   * failed with an error.
   */
  end(right: boolean | undefined): void;
}

interface WrongCount {
  wrong: number;
  at: number;
}

interface SignedIn extends WrongCount {
  active: number;
  lastMs: number;
}

interface Name extends WrongCount {
  active: number;
  /** How many of the active attempts came through a suspect network. */
  suspects: number;
}

interface Attempt {
  readonly name: Name;
  /** Indexes of the counters of the networks that the request came through. */
  readonly networks: ReadonlySet<number>;
  readonly suspect: boolean;
  /** Whether the limiter has rejected the client within the last minute. */
  readonly repeated: boolean;
  /**
   * Rejects this attempt while it waits, so that another attempt gets its slot; `null` as soon as the check of the
   * password has begun.
   */
  displace: (() => void) | null;
}

/**
 * Limits how many passwords are checked for one user name, from all clients together. Wrong passwords never lock a user
 * name.
 *
 * Up to 10 wrong passwords per minute of one user name cause no delay. After more wrong passwords, each check waits:
 * 0.1 s, 0.2 s and so on up to 3 s, for right and wrong passwords alike. At most 60 attempts of a user name wait or are
 * checked at the same time, so at most 1,200 per minute are checked. At most 6 of these 60 attempts may come through
 * networks that sent 10 or more wrong passwords in the last minutes, which is 120 checks per minute. These networks may
 * include the network of a proxy, because clients behind a proxy may invent their addresses.
 *
 * If no slot is free, the new attempt takes the slot of a waiting attempt whose networks sent more wrong passwords in
 * the last minutes. If the networks of both attempts sent the same number, the new attempt takes the slot only if it
 * repeats a rejected attempt and the waiting attempt does not. A client that invents an address for each attempt never
 * repeats an attempt. If the new attempt gets no slot, the limiter rejects it and does not check the password.
 *
 * A client is not delayed if its user name signed in from the same network within the last 12 hours, unless this
 * network sends more than 10 wrong passwords per minute. The memory of the limiter is bounded. Existing and unknown
 * user names are treated alike.
 */
export class SignInLimiter {
  readonly #key = randomBytes(32);
  readonly #names = new Map<number, Name>();
  /** The counters of networks. Each counter contains a number of wrong passwords. */
  readonly #networks = new Uint8Array(NETWORK_COUNTERS);
  readonly #attempts = new Set<Attempt>();
  /** When the limiter last rejected a client, by the client's network; the latest rejection is last. */
  readonly #rejectedAt = new Map<string, number>();
  readonly #signedIn = new Map<string, SignedIn>();
  #halvedAt: number;

  constructor(private readonly runtime: ConsoleRuntime) {
    this.#halvedAt = runtime.monotonic();
  }

  /**
   * Resolves with the attempt when the password may be checked. Resolves with `null` if the password must not be
   * checked, so that the client has to try again later.
   *
   * @param networks the client's network, followed by the other networks that the request came through
   */
  admit(name: string, networks: readonly [string, ...string[]]): Promise<AdmittedAttempt | null> {
    const pair = `${name}\0${networks[0]}`;
    const known = this.#known(pair);
    return known === undefined
      ? this.#admitUnknown(name, networks, pair)
      : Promise.resolve(this.#admitKnown(known, pair));
  }

  /**
   * Returns what the limiter remembers about the last sign-in of a pair of user name and network. Returns `undefined`
   * if there is no such sign-in, if it is too old, or if too many wrong passwords or concurrent checks belong to the
   * pair.
   */
  #known(pair: string): SignedIn | undefined {
    const known = this.#signedIn.get(pair);
    if (known === undefined) return undefined;
    const now = this.runtime.monotonic();
    if (now - known.lastMs >= SIGNED_IN_MS) {
      this.#signedIn.delete(pair);
      return undefined;
    }
    return wrongOf(known, now) < UNDELAYED && known.active < PARALLEL ? known : undefined;
  }

  #admitKnown(known: SignedIn, pair: string): AdmittedAttempt {
    known.active += 1;
    return {
      end: (right) => {
        known.active -= 1;
        if (right === true) this.#remember(pair);
        if (right === false) countWrong(known, this.runtime.monotonic());
      },
    };
  }

  async #admitUnknown(
    name: string,
    networks: readonly [string, ...string[]],
    pair: string,
  ): Promise<AdmittedAttempt | null> {
    const now = this.runtime.monotonic();
    const counters = networks.map((network) => this.#hash('network', network) % NETWORK_COUNTERS);
    const attempt: Attempt = {
      name: this.#nameOf(name),
      networks: new Set(counters),
      suspect: counters.some((counter) => this.#networks[counter]! >= SUSPECT),
      repeated: now - (this.#rejectedAt.get(networks[0]) ?? -Infinity) < REJECTED_MS,
      displace: null,
    };
    const delayMs = delayOf(attempt.name, now);
    if (!this.#makeRoom(attempt) || !(await this.#wait(attempt, delayMs))) {
      this.#rememberRejected(networks[0]);
      return null;
    }
    return {
      end: (right) => {
        this.#removeAttempt(attempt);
        if (right === true) this.#remember(pair);
        if (right === false) this.#countWrong(attempt);
      },
    };
  }

  /**
   * Returns whether a new attempt can take a slot. If no slot is free, rejects the waiting attempt with the highest
   * rank, if this rank is higher than the rank of the new attempt.
   */
  #makeRoom(attempt: Attempt): boolean {
    const { name, suspect } = attempt;
    const suspectsFull = suspect && name.suspects >= SUSPECT_SLOTS;
    const nameFull = suspectsFull || name.active >= SLOTS_PER_NAME;
    if (!nameFull && this.#attempts.size < SLOTS) return true;
    let worst: Attempt | undefined;
    for (const other of this.#attempts) {
      if (other.displace === null || (nameFull && other.name !== name)) continue;
      if (suspectsFull && !other.suspect) continue;
      if (this.#rankOf(other) > this.#rankOf(worst ?? attempt)) worst = other;
    }
    worst?.displace?.();
    return worst !== undefined;
  }

  /**
   * Returns the rank of an attempt. The attempt with the highest rank loses its slot. The rank is the number of wrong
   * passwords of the attempt's networks. If these numbers are equal, an attempt that repeats no rejected attempt has
   * the higher rank. If all attempts come through the same proxy, the wrong passwords of the proxy's network do not
   * change the order of the ranks.
   */
  #rankOf({ networks, repeated }: Attempt): number {
    let wrong = 0;
    for (const network of networks) wrong += this.#networks[network]!;
    return repeated ? wrong : wrong + 0.5;
  }

  #addAttempt(attempt: Attempt): void {
    this.#attempts.add(attempt);
    attempt.name.active += 1;
    if (attempt.suspect) attempt.name.suspects += 1;
  }

  #removeAttempt(attempt: Attempt): void {
    this.#attempts.delete(attempt);
    attempt.name.active -= 1;
    if (attempt.suspect) attempt.name.suspects -= 1;
  }

  /** Takes a slot. Resolves with `true` after the delay, or with `false` if another attempt got the slot. */
  async #wait(attempt: Attempt, delayMs: number): Promise<boolean> {
    this.#addAttempt(attempt);
    if (delayMs === 0) return true;
    return new Promise((resolve) => {
      const stop = this.runtime.schedule(delayMs, () => {
        attempt.displace = null;
        resolve(true);
      });
      attempt.displace = () => {
        stop();
        this.#removeAttempt(attempt);
        resolve(false);
      };
    });
  }

  #rememberRejected(network: string): void {
    this.#rejectedAt.delete(network);
    this.#rejectedAt.set(network, this.runtime.monotonic());
    const [oldest] = this.#rejectedAt.keys();
    if (this.#rejectedAt.size > REJECTED) this.#rejectedAt.delete(oldest!);
  }

  #nameOf(text: string): Name {
    const index = this.#hash('name', text) % NAME_COUNTERS;
    const name = this.#names.get(index) ?? { wrong: 0, at: 0, active: 0, suspects: 0 };
    this.#names.set(index, name);
    return name;
  }

  #countWrong({ name, networks }: Attempt): void {
    const now = this.runtime.monotonic();
    countWrong(name, now);
    if (now - this.#halvedAt >= HALVE_MS) {
      this.#halvedAt = now;
      for (let index = 0; index < NETWORK_COUNTERS; index += 1) this.#networks[index]! >>= 1;
    }
    for (const network of networks) {
      this.#networks[network] = Math.min(255, this.#networks[network]! + 1);
    }
  }

  #remember(pair: string): void {
    const known = this.#signedIn.get(pair) ?? { wrong: 0, at: 0, lastMs: 0, active: 0 };
    known.lastMs = this.runtime.monotonic();
    // A map keeps the order of insertion, so the pair with the oldest sign-in comes first.
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
  const wrong = Math.ceil(wrongOf(name, now) + name.active + 1 - UNDELAYED);
  return Math.min(MAX_DELAY_MS, Math.max(0, wrong) * STEP_MS);
}

/** Returns the current number of wrong passwords, which decreases with time. */
function wrongOf({ wrong, at }: WrongCount, now: number): number {
  return Math.max(0, wrong - (now - at) / DECREMENT_MS);
}

function countWrong(count: WrongCount, now: number): void {
  count.wrong = Math.min(MAX_WRONG, wrongOf(count, now) + 1);
  count.at = now;
}
