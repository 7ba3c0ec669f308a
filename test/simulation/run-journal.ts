import type { Lease } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { SimulatedProcess } from './simulated-process.ts';

/** One attempt of a handler, as the handler itself sees it. */
export interface JournalRun {
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
  readonly alone: boolean;
  ended: boolean;
  /** Whether a commit of this run took effect. */
  committed: boolean;
}

/** A claim that a process was given. */
interface Holder {
  readonly worker: string;
  readonly alone: boolean;
}

/** What is known of a worker, in milliseconds of virtual time. */
interface Beats {
  /** When its last heartbeat took effect. */
  last: number;
  /** When a heartbeat took effect that was too late. */
  lostAt: number;
  /** Until when it keeps its deliveries after it retired. */
  retiredUntil: number;
  /** Until when a closing application must keep the deliveries of handlers that still run. */
  graceUntil: number;
}

/** How long a closing application keeps the deliveries of handlers that still run, in milliseconds. */
const GRACE_MS = 10_000;

/** Limits of the simulated application, in milliseconds. */
export interface JournalLimits {
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** By handler. */
  readonly concurrency: Readonly<Record<string, number>>;
}

/** Records what handlers do in all processes, and finds what they must never do. */
export class RunJournal {
  readonly violations: string[] = [];
  readonly #runs: JournalRun[] = [];
  /** Who claimed a delivery last, by process and delivery. */
  readonly #claims = new Map<string, Holder>();
  readonly #beats = new Map<string, Beats>();

  /** Workers whose processes learned that they are dead. */
  readonly #declaredDead = new Set<string>();
  readonly #limits: JournalLimits;
  readonly #now: () => number;
  readonly #trace: (line: string) => void;

  constructor(trace: (line: string) => void, limits: JournalLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
    this.#trace = trace;
  }

  /** A worker registered or sent a heartbeat that took effect. */
  beat(worker: string, now: number): void {
    const known = this.#beats.get(worker) ?? {
      last: now,
      lostAt: -Infinity,
      retiredUntil: Infinity,
      graceUntil: Infinity,
    };
    if (now - known.last >= this.#limits.leaseMs) known.lostAt = now;
    known.last = now;
    this.#beats.set(worker, known);
  }

  /** A worker retired: because its application closes, or because its process goes on under another id. */
  retired(worker: string, graceMs: number, closing: boolean): void {
    const known = this.#beats.get(worker);
    if (known === undefined) return;
    known.retiredUntil = Math.min(known.retiredUntil, this.#now() + graceMs);
    const mustMs = closing ? Math.max(graceMs, GRACE_MS) : graceMs;
    known.graceUntil = Math.min(known.graceUntil, this.#now() + mustMs);
  }

  /** Whether others may have freed the deliveries of a worker, now or since `since`. */
  lost(worker: string, since: number): boolean {
    const known = this.#beats.get(worker);
    if (known === undefined) return true;
    if (known.retiredUntil <= this.#now() || known.lostAt >= since) return true;
    return known.retiredUntil === Infinity && this.#now() - known.last >= this.#limits.leaseMs;
  }

  hasRetired(worker: string): boolean {
    return (this.#beats.get(worker)?.retiredUntil ?? Infinity) < Infinity;
  }

  claimed(process: SimulatedProcess, worker: string, lease: Lease, alone: boolean): void {
    this.#claims.set(claimKey(process, lease), { worker, alone });
  }

  /** Of a handler that begins. */
  begin(
    run: Pick<
      JournalRun,
      'process' | 'handler' | 'company' | 'id' | 'orderingKey' | 'attempt' | 'signal'
    >,
  ): JournalRun {
    const holder = this.#claims.get(claimKey(run.process, run)) ?? { worker: '?', alone: false };
    const begun: JournalRun = {
      ...run,
      ...holder,
      startedAt: this.#now(),
      ended: false,
      committed: false,
    };
    this.#checkOverlap(begun);
    this.#checkPlaces(begun);
    this.#checkAlone(begun);
    this.#runs.push(begun);
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

  /** The store reported to a process that one of its workers is dead. */
  declaredDead(worker: string): void {
    this.#declaredDead.add(worker);
  }

  /** A worker learned that it was declared dead: its runs must be aborted at once. */
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

  /** A process that nothing stops must send heartbeats for every worker that it runs deliveries of. */
  checkHeartbeats(): void {
    const { leaseMs } = this.#limits;
    for (const run of this.#live()) {
      const beats = this.#beats.get(run.worker);
      if (beats === undefined || beats.retiredUntil < Infinity) continue;
      if (run.committed || run.signal.aborted || run.process.undisturbedMs < 2 * leaseMs) continue;
      if (this.#now() - beats.last < leaseMs) continue;
      this.violations.push(
        `IN-12 no heartbeat was sent for ${nameOf(run)}, though nothing stopped it`,
      );
    }
  }

  /** Runs whose handlers have not ended, in processes that are alive. */
  #live(): JournalRun[] {
    return this.#runs.filter(({ ended, process }) => !ended && process.alive);
  }

  /** Whether its place is free although its handler has not ended. */
  #timedOut(run: JournalRun): boolean {
    return run.signal.aborted && this.#now() - run.startedAt >= this.#limits.timeoutMs - 1;
  }

  /** A heartbeat that fails aborts nothing. */
  #checkAbort(run: JournalRun): void {
    if (this.#timedOut(run) || run.process.draining || this.#declaredDead.has(run.worker)) return;
    this.violations.push(`IN-14 ${nameOf(run)} was aborted without a reason`);
  }

  #checkOverlap(run: JournalRun): void {
    // The exception: a process that was paused past its lease has not found out yet.
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
    const { graceUntil, lostAt } = this.#beats.get(worker)!;
    return graceUntil < Infinity && this.#now() < graceUntil && lostAt === -Infinity;
  }

  #checkPlaces(run: JournalRun): void {
    const others = this.#live().filter(
      (other) =>
        other.process === run.process && other.handler === run.handler && !this.#timedOut(other),
    );
    const limit = this.#limits.concurrency[run.handler]!;
    // A worker that was declared dead goes on with new places, next to aborted runs that have not ended yet.
    const running = others.filter(({ signal }) => !signal.aborted).length;
    if (running >= limit) {
      this.violations.push(`IN-30 ${nameOf(run)} is one too many: ${limit} run already`);
    }
  }

  #checkAlone(run: JournalRun): void {
    const others = this.#live().filter(
      (other) => other.process === run.process && !other.signal.aborted,
    );
    const alone = run.alone ? others[0] : others.find((other) => other.alone);
    if (alone !== undefined) {
      this.violations.push(
        `IN-19 ${nameOf(run)} and ${nameOf(alone)} ran together; one is to run alone`,
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

export function nameOf(run: JournalRun): string {
  return `attempt ${run.attempt} of ${run.company}/${run.id} to ${run.handler} in ${run.process.name} (since ${run.startedAt} ms)`;
}
