import { PaymentsError } from '../../../errors/payments-error.js';
import { unavailable } from './connection.js';
import { bytesOf } from './messages.js';
import type { Call } from './messages.js';

const MAX_CALLS = 20_000;
const MAX_BYTES = 256 * 1024 ** 2;

interface OpenCall {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
  readonly bytes: number;
  /** When the call times out, by `performance.now()`: real time, because the call waits for a disk. */
  readonly until: number;
  timedOut: boolean;
}

/**
 * The calls that the thread has. Each ends within a bounded time: they share one timer, because the thread responds to most of
 * them long before they time out. Their number and size are limited, so that they do not fill the memory while the disk
 * hangs. A call that timed out still counts, because the thread still has it and its bodies.
 */
export class OpenCalls {
  /** In the order in which they time out. */
  readonly #calls = new Map<number, OpenCall>();
  #bytes = 0;
  /** How many calls have not timed out. */
  #pending = 0;
  /** Whether the timer runs. Its call is the oldest one, or has received its response meanwhile. */
  #timerRuns = false;

  constructor(
    private readonly timeoutMs: number,
    /** Called when the caller of no call waits any more. */
    private readonly onIdle: () => void,
  ) {}

  get isIdle(): boolean {
    return this.#pending === 0;
  }

  /** @throws PaymentsError if the thread can take no further call. */
  checkLimits(name: Call['name']): void {
    if (this.#calls.size < MAX_CALLS && this.#bytes < MAX_BYTES) return;
    const error = unavailable(
      `has ${this.#calls.size} operations waiting for the disk, and accepts no more for now.`,
    );
    // The thread has not got the events, so they are certainly not stored.
    throw name === 'receive' ? new PaymentsError('inbox_full', error.message) : error;
  }

  /** Resolves or rejects when the call ends: see {@link take}. */
  add<T>(call: Pick<Call, 'number' | 'name' | 'args'>): Promise<T> {
    const bytes = bytesOf(call);
    const until = performance.now() + this.timeoutMs;
    this.#bytes += bytes;
    this.#pending += 1;
    if (!this.#timerRuns) this.#startTimer(this.timeoutMs);
    return new Promise<T>((resolve, reject) => {
      this.#calls.set(call.number, { resolve, reject, bytes, until, timedOut: false });
    });
  }

  /** Removes a call, so that the client can end it. To end a call that has timed out has no effect. */
  take(number: number): Pick<OpenCall, 'resolve' | 'reject'> | undefined {
    const call = this.#calls.get(number);
    if (call === undefined) return undefined;
    this.#calls.delete(number);
    this.#bytes -= call.bytes;
    if (!call.timedOut) this.#ended();
    return call;
  }

  rejectAll(error: Error): void {
    for (const number of this.#calls.keys()) this.take(number)?.reject(error);
  }

  #ended(): void {
    this.#pending -= 1;
    if (this.#pending === 0) this.onIdle();
  }

  #startTimer(ms: number): void {
    this.#timerRuns = true;
    setTimeout(() => this.#timeOut(), ms).unref();
  }

  #timeOut(): void {
    this.#timerRuns = false;
    const now = performance.now();
    for (const call of this.#calls.values()) {
      if (call.timedOut) continue;
      if (call.until > now) {
        this.#startTimer(call.until - now);
        return;
      }
      call.timedOut = true;
      call.reject(
        unavailable(
          `did not respond within ${this.timeoutMs} ms: its disk is slow or the file is locked. ` +
            'The operation may take effect later.',
        ),
      );
      this.#ended();
    }
  }
}
