import type { PaymentsRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import type { SeededRandom } from '../chaos/seeded-random.ts';
import type { Timeline } from './virtual-timeline.ts';

/** The store operations that a fault can affect. */
export const FAULTY_OPERATIONS = [
  'any',
  'receive',
  'claim',
  'claimSuspect',
  'complete',
  'fail',
  'commit',
  'heartbeat',
  'register',
  'retire',
  'release',
  'expectations.expect',
  'expectations.claimPolls',
  'expectations.attach',
  'expectations.settlePoll',
  'expectations.startRequest',
  'expectations.endRequest',
] as const;

/** A fault of the next call of one store operation. */
export interface Fault {
  readonly operation: (typeof FAULTY_OPERATIONS)[number];
  /** Whether the operation takes effect before the fault. */
  readonly kind:
    | 'reject before'
    | 'reject after'
    | 'crash before'
    | 'crash after'
    | 'slow before'
    | 'slow after';
}

/** The wall clock at the start of a simulation. */
const START = Date.UTC(2026, 0, 1);
/** Network delays of a store operation, for each direction, in milliseconds. */
const DELAYS_MS = [0, 0, 0, 0, 1, 2, 10, 40];

/**
 * One process: its clocks, its timers, and its faults. After a crash, its timers never run, and the promises that it
 * awaits never resolve.
 */
export class SimulatedProcess {
  #alive = true;
  #pausedUntil = -Infinity;
  /** The end of the outage in which this process cannot reach the store. */
  #cutOffUntil = -Infinity;
  #waiting: (() => void)[] = [];
  #onDeath: (() => void)[] = [];
  readonly #faults: Fault[] = [];
  #lastFaultAt = -Infinity;
  readonly #startedAt: number;
  /** Whether the drain of the process has begun. */
  draining = false;
  readonly runtime: PaymentsRuntime;

  readonly name: string;
  readonly timeline: Timeline;
  readonly #random: SeededRandom;

  constructor(
    name: string,
    timeline: Timeline,
    random: SeededRandom,
    /** How far the wall clock of the process is ahead, in milliseconds; negative if it is behind. */
    skewMs: number,
  ) {
    this.name = name;
    this.timeline = timeline;
    this.#random = random;

    this.#startedAt = timeline.now;
    this.runtime = {
      now: () => START + timeline.now + skewMs,
      monotonic: () => timeline.now,
      random: () => random.next(),
      schedule: (ms, callback) => timeline.schedule(ms, () => this.deliver(callback)),
      environment: 'test',
    };
  }

  /** The milliseconds since the process was last paused. */
  get awakeMs(): number {
    return this.timeline.now - Math.max(0, this.#pausedUntil);
  }

  /** The milliseconds since the last pause, outage or fault of the process. */
  get undisturbedMs(): number {
    const since = Math.max(
      this.#pausedUntil,
      this.#cutOffUntil,
      this.#lastFaultAt,
      this.#startedAt,
    );
    return this.timeline.now - since;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Runs the callback: after the pause if the process is paused, and never if it is dead. */
  deliver(callback: () => void): void {
    if (!this.#alive) return;
    if (this.timeline.now < this.#pausedUntil) this.#waiting.push(callback);
    else callback();
  }

  /** Stops the process for some time, as a blocked event loop or SIGSTOP does. */
  pauseFor(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.timeline.now + ms);
    this.timeline.schedule(ms, () => {
      // A timer may run early, and another pause may have begun.
      const leftMs = this.#pausedUntil - this.timeline.now;
      if (leftMs > 0) return this.pauseFor(leftMs);
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const callback of waiting) this.timeline.schedule(0, () => this.deliver(callback));
    });
  }

  /** Makes every store operation reject for some time. */
  cutOffFor(ms: number): void {
    this.#cutOffUntil = Math.max(this.#cutOffUntil, this.timeline.now + ms);
  }

  get cutOff(): boolean {
    return this.timeline.now < this.#cutOffUntil;
  }

  /** Ends the process immediately. */
  crash(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const callback of this.#onDeath) callback();
  }

  /** Calls the callback when the process dies, or immediately if the process is already dead. */
  onDeath(callback: () => void): void {
    if (this.#alive) this.#onDeath.push(callback);
    else callback();
  }

  addFault(fault: Fault): void {
    this.#faults.push(fault);
  }

  /** Removes all faults, including faults that have not happened yet. */
  heal(): void {
    this.#faults.length = 0;
    this.#cutOffUntil = Math.min(this.#cutOffUntil, this.timeline.now);
  }

  takeFault(operation: string): Fault['kind'] | null {
    const index = this.#faults.findIndex(
      (one) => one.operation === 'any' || one.operation === operation,
    );
    if (index === -1) return null;
    this.#lastFaultAt = this.timeline.now;
    return this.#faults.splice(index, 1)[0]!.kind;
  }

  /** Returns `true` for one call in `count` on average, by the seed. Decides whether a wake-up is lost. */
  oneIn(count: number): boolean {
    return this.#random.between(1, count) === 1;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.runtime.schedule(ms, resolve));
  }

  /** Waits for the network delay of one direction. */
  transfer(): Promise<void> {
    return this.sleep(this.#random.pick(DELAYS_MS));
  }
}

/** A promise that never resolves, for a dead process. */
export function never(): Promise<never> {
  return new Promise(() => {});
}
