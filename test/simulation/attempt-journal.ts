import type { Lease, StoreReceipt } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { SimulatedProcess } from './simulated-process.ts';

/** One attempt, as its handler records it. */
export interface JournalAttempt {
  readonly process: SimulatedProcess;
  readonly handler: string;
  readonly company: string;
  readonly id: string;
  readonly orderingKey: string | null;
  readonly attempt: number;
  readonly startedAt: number;
  readonly signal: AbortSignal;
  /** Id of the worker that claimed the delivery. */
  readonly worker: string;
  /** Whether the delivery was a suspect when it was claimed. */
  readonly suspect: boolean;
  ended: boolean;
  /** Whether a commit of this attempt took effect. */
  committed: boolean;
}

/** The claim of a delivery. */
interface Claim {
  readonly worker: string;
  readonly suspect: boolean;
}

/** The heartbeats and the end of a worker, in milliseconds of virtual time. */
interface Heartbeats {
  /** The time when the last heartbeat of the worker took effect. */
  last: number;
  /** The time when a late heartbeat last took effect. Other workers may have declared this worker dead before. */
  lostAt: number;
  /** The end of the grace period of a retired worker. */
  retiredUntil: number;
  /** Until this time, no other worker may free the deliveries of running handlers; `Infinity` unless the worker retired. */
  graceUntil: number;
}

/** The minimum grace period of an application that closes while handlers run, in milliseconds. */
const GRACE_MS = 10_000;

/** Limits of the simulated application, in milliseconds. */
export interface JournalLimits {
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** Maximum number of concurrent attempts in a process, by handler. */
  readonly concurrency: Readonly<Record<string, number>>;
}

/** Records the attempts of all processes, and finds violations of the promises about attempts. */
export class AttemptJournal {
  readonly violations: string[] = [];
  readonly #attempts: JournalAttempt[] = [];
  /** The last claim of each delivery by each process. */
  readonly #claims = new Map<string, Claim>();
  readonly #heartbeats = new Map<string, Heartbeats>();

  /** The workers that the store has reported as dead to their process. */
  readonly #declaredDead = new Set<string>();
  readonly #limits: JournalLimits;
  readonly #now: () => number;
  readonly #trace: (line: string) => void;

  constructor(trace: (line: string) => void, limits: JournalLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
    this.#trace = trace;
  }

  /** Call this method when a registration or heartbeat of a worker took effect. */
  heartbeat(worker: string, now: number): void {
    const known = this.#heartbeats.get(worker) ?? {
      last: now,
      lostAt: -Infinity,
      retiredUntil: Infinity,
      graceUntil: Infinity,
    };
    if (now - known.last >= this.#limits.leaseMs) known.lostAt = now;
    known.last = now;
    this.#heartbeats.set(worker, known);
  }

  /** Call this method when a worker retired because its application closes or its process has registered under another id. */
  retired(worker: string, graceMs: number, closing: boolean): void {
    const known = this.#heartbeats.get(worker);
    if (known === undefined) return;
    // Other workers may have freed its deliveries already.
    if (this.#now() - known.last >= this.#limits.leaseMs) known.lostAt = this.#now();
    known.retiredUntil = Math.min(known.retiredUntil, this.#now() + graceMs);
    const mustMs = closing ? Math.max(graceMs, GRACE_MS) : graceMs;
    known.graceUntil = Math.min(known.graceUntil, this.#now() + mustMs);
  }

  /** Whether other workers may have freed the deliveries of a worker since the time `since`. */
  lost(worker: string, since: number): boolean {
    const known = this.#heartbeats.get(worker);
    if (known === undefined) return true;
    if (known.retiredUntil <= this.#now() || known.lostAt >= since) return true;
    return known.retiredUntil === Infinity && this.#now() - known.last >= this.#limits.leaseMs;
  }

  hasRetired(worker: string): boolean {
    return (this.#heartbeats.get(worker)?.retiredUntil ?? Infinity) < Infinity;
  }

  claimed(process: SimulatedProcess, worker: string, lease: StoreReceipt['claimed'][number]): void {
    this.#claims.set(claimKey(process, lease), { worker, suspect: lease.crashes > 0 });
  }

  /** Call this method when a handler begins an attempt. */
  begin(
    run: Pick<
      JournalAttempt,
      'process' | 'handler' | 'company' | 'id' | 'orderingKey' | 'attempt' | 'signal'
    >,
  ): JournalAttempt {
    const holder = this.#claims.get(claimKey(run.process, run)) ?? { worker: '?', suspect: false };
    const begun: JournalAttempt = {
      ...run,
      ...holder,
      startedAt: this.#now(),
      ended: false,
      committed: false,
    };
    this.#checkOverlap(begun);
    this.#checkSlots(begun);
    this.#checkSuspects(begun);
    this.#attempts.push(begun);
    begun.signal.addEventListener('abort', () => this.#checkAbort(begun));
    this.#trace(`begin ${nameOf(begun)}`);
    return begun;
  }

  committed(process: SimulatedProcess, { company, id, handler }: Lease): void {
    for (const run of this.#live()) {
      const same = run.company === company && run.id === id && run.handler === handler;
      if (same && run.process === process) run.committed = true;
    }
  }

  /** Call this method when the store has reported to a process that its worker is dead. */
  declaredDead(worker: string): void {
    this.#declaredDead.add(worker);
  }

  /**
   * Checks that the attempts of a worker are aborted. Call this method after the process has received the report that the worker
   * is dead.
   */
  checkAborted(process: SimulatedProcess, worker: string): void {
    for (const run of this.#live()) {
      if (run.process !== process || run.worker !== worker || run.committed) continue;
      if (!run.signal.aborted) {
        this.violations.push(
          `IN-14 ${nameOf(run)} was not aborted when its worker was declared dead`,
        );
      }
    }
  }

  /** Checks that each undisturbed process sends heartbeats for all its workers with running attempts. */
  checkHeartbeats(): void {
    const { leaseMs } = this.#limits;
    for (const run of this.#live()) {
      const heartbeats = this.#heartbeats.get(run.worker);
      if (heartbeats === undefined || heartbeats.retiredUntil < Infinity) continue;
      if (run.committed || run.signal.aborted || run.process.undisturbedMs < 2 * leaseMs) continue;
      if (this.#now() - heartbeats.last < leaseMs) continue;
      this.violations.push(
        `IN-12 no heartbeat was sent for ${nameOf(run)}, though nothing stopped it`,
      );
    }
  }

  /** Attempts whose handlers have not ended, in processes that are alive. */
  #live(): JournalAttempt[] {
    return this.#attempts.filter(({ ended, process }) => !ended && process.alive);
  }

  /** Whether the time limit of the attempt is over. Its slot is then free although its handler has not ended. */
  #timedOut(run: JournalAttempt): boolean {
    return run.signal.aborted && this.#now() - run.startedAt >= this.#limits.timeoutMs - 1;
  }

  /** An attempt may be aborted by its time limit, a drain, or the death of its worker; not by a failed heartbeat. */
  #checkAbort(run: JournalAttempt): void {
    if (this.#timedOut(run) || run.process.draining || this.#declaredDead.has(run.worker)) return;
    this.violations.push(`IN-14 ${nameOf(run)} was aborted without a reason`);
  }

  #checkOverlap(run: JournalAttempt): void {
    // The documented exception: a process that was paused past its lease and does not know that its worker is dead.
    if (this.lost(run.worker, run.startedAt)) return;
    for (const other of this.#live()) {
      const sameKey = other.orderingKey !== null && other.orderingKey === run.orderingKey;
      const same = other.company === run.company && other.handler === run.handler;
      if (!same || !(sameKey || other.id === run.id)) continue;
      if (other.committed || this.#timedOut(other)) continue;
      if (this.lost(other.worker, other.startedAt) && !this.#inGrace(other.worker)) continue;
      this.violations.push(`IN-16 ${nameOf(run)} began while ${nameOf(other)} ran`);
    }
  }

  #inGrace(worker: string): boolean {
    const { graceUntil, lostAt } = this.#heartbeats.get(worker)!;
    return graceUntil < Infinity && this.#now() < graceUntil && lostAt === -Infinity;
  }

  #checkSlots(run: JournalAttempt): void {
    const others = this.#live().filter(
      (other) =>
        other.process === run.process && other.handler === run.handler && !this.#timedOut(other),
    );
    const limit = this.#limits.concurrency[run.handler]!;
    // After its worker was declared dead, a process has new slots, while aborted attempts may not have ended yet.
    const running = others.filter(({ signal }) => !signal.aborted).length;
    if (running >= limit) {
      this.violations.push(`IN-30 ${nameOf(run)} exceeds the concurrency of ${limit}`);
    }
  }

  #checkSuspects(run: JournalAttempt): void {
    const other = this.#live().find(
      ({ process, suspect, signal }) => process === run.process && suspect && !signal.aborted,
    );
    if (run.suspect && other !== undefined) {
      this.violations.push(
        `IN-19 ${nameOf(run)} and ${nameOf(other)} are suspects and ran together`,
      );
    }
  }
}

function claimKey(
  process: SimulatedProcess,
  { company, id, handler }: Pick<Lease, 'company' | 'id' | 'handler'>,
): string {
  return `${process.name}/${company}/${id}/${handler}`;
}

export function nameOf(run: JournalAttempt): string {
  return `attempt ${run.attempt} of ${run.company}/${run.id} to ${run.handler} in ${run.process.name} (since ${run.startedAt} ms)`;
}
