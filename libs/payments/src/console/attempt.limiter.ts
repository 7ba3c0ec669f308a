import type { PaymentsRuntime } from '../payments.runtime.js';

/** Wrong passwords a client may try within the window. */
const FAILURES = 10;
const WINDOW_MS = 60_000;
/** Attempts of one client that may be looked at at the same time: a page asks for its files all at once. */
const PENDING = 50;
/** How many clients are remembered. */
const CLIENTS = 1000;

interface Client {
  since: number;
  failures: number;
  pending: number;
}

/**
 * Slows down who guesses passwords: ten wrong ones a minute and client, and fifty more where they come all at once.
 * Bounded: of more than 1,000 clients, the one that came first is forgotten.
 */
export class AttemptLimiter {
  readonly #clients = new Map<string, Client>();

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** How long a client has to wait, in milliseconds; 0 where its attempt may be looked at, to be told to {@link end}. */
  begin(name: string): number {
    const client = this.#client(name);
    if (client.failures >= FAILURES) return client.since + WINDOW_MS - this.runtime.monotonic();
    if (client.pending >= PENDING) return 1000;
    client.pending += 1;
    return 0;
  }

  end(name: string, right: boolean): void {
    const client = this.#client(name);
    client.pending = Math.max(0, client.pending - 1);
    if (!right) client.failures += 1;
  }

  #client(name: string): Client {
    const now = this.runtime.monotonic();
    const known = this.#clients.get(name);
    if (known !== undefined && (known.pending > 0 || known.failures > 0)) {
      if (now - known.since < WINDOW_MS) return known;
      known.since = now;
      known.failures = 0;
      return known;
    }
    this.#clients.delete(name);
    const [oldest] = this.#clients.keys();
    if (this.#clients.size >= CLIENTS && oldest !== undefined) this.#clients.delete(oldest);
    const client = { since: now, failures: 0, pending: 0 };
    this.#clients.set(name, client);
    return client;
  }
}
