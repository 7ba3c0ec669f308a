import { PaymentsError } from '../../../errors/payments-error.js';
import { unavailable } from './connection.js';
import type { IncomingEvent } from '../../../inbox/store/inbox-store.js';
import type { Call } from './messages.js';

/** How the client ends a call. */
export interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

interface TimedCall extends Pending {
  /** When the call times out, by `performance.now()`: real time, because the call waits for a disk. */
  readonly until: number;
}

/**
 * Calls that wait for their responses. They share one timer, because the thread responds to most of them long before
 * they time out.
 */
export class PendingCalls {
  /** The pending calls in the order in which they time out. */
  readonly #calls = new Map<number, TimedCall>();
  /** Whether the timer runs. Its call is the oldest one, or has received its response meanwhile. */
  #timerRuns = false;

  /** `onTimeout` is called for each call without a response within `timeoutMs`. */
  constructor(
    private readonly timeoutMs: number,
    private readonly onTimeout: (call: Pending) => void,
    /** Called when no call is pending any more. */
    private readonly onIdle: () => void,
  ) {}

  get size(): number {
    return this.#calls.size;
  }

  add(number: number, { resolve, reject }: Pending): void {
    this.#calls.set(number, { resolve, reject, until: performance.now() + this.timeoutMs });
    if (!this.#timerRuns) this.#startTimer(this.timeoutMs);
  }

  /** Removes a call, so that the client can end it; `undefined` if the call has timed out. */
  take(number: number): Pending | undefined {
    const call = this.#calls.get(number);
    if (call === undefined) return undefined;
    this.#calls.delete(number);
    if (this.#calls.size === 0) this.onIdle();
    return call;
  }

  rejectAll(error: Error): void {
    for (const number of this.#calls.keys()) this.take(number)?.reject(error);
  }

  #startTimer(ms: number): void {
    this.#timerRuns = true;
    setTimeout(() => this.#timeOut(), ms).unref();
  }

  #timeOut(): void {
    this.#timerRuns = false;
    const now = performance.now();
    for (const [number, call] of this.#calls) {
      if (call.until > now) {
        this.#startTimer(call.until - now);
        return;
      }
      this.take(number);
      this.onTimeout(call);
    }
  }
}

const MAX_CALLS = 20_000;
const MAX_BYTES = 256 * 1024 ** 2;

/**
 * Limits the number and the size of the calls that the thread has, so that they do not fill the memory while the disk
 * hangs. A call that timed out still counts, because the thread still has it and its bodies.
 */
export class CallLimit {
  readonly #bytes = new Map<number, number>();
  #total = 0;

  /** The error that rejects a further call; `null` if the thread can take the call. */
  rejection(name: Call['name']): PaymentsError | null {
    if (this.#bytes.size < MAX_CALLS && this.#total < MAX_BYTES) return null;
    const error = unavailable(
      `has ${this.#bytes.size} operations waiting for the disk, and accepts no more for now.`,
    );
    // The thread has not got the events, so they are certainly not stored.
    return name === 'receive' ? new PaymentsError('inbox_full', error.message) : error;
  }

  add(call: Pick<Call, 'number' | 'name' | 'args'>): void {
    const bytes = bytesOf(call);
    this.#bytes.set(call.number, bytes);
    this.#total += bytes;
  }

  remove(number: number): void {
    this.#total -= this.#bytes.get(number) ?? 0;
    this.#bytes.delete(number);
  }

  /** Call it when the thread has ended. */
  clear(): void {
    this.#bytes.clear();
    this.#total = 0;
  }
}

/** Size of the bodies in a call. */
export function bytesOf({ name, args }: Pick<Call, 'name' | 'args'>): number {
  if (name !== 'receive') return 0;
  const [events] = args as [readonly IncomingEvent[]];
  return events.reduce((sum, { raw }) => sum + raw.byteLength, 0);
}
