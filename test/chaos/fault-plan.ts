import type { SeededRandom } from './seeded-random.js';

export type StoreKind = 'sqlite' | 'postgres';

/**
 * - `kill`: SIGKILL; the process restarts at once.
 * - `stop`: SIGSTOP for longer than the lease, then SIGCONT.
 * - `block`: a busy loop blocks the event loop for longer than the lease.
 * - `drain`: SIGTERM; the process restarts when it has ended.
 * - `clock`: the wall clock of the process jumps forward or back by up to an hour.
 * - `takeover`: SIGSTOP while a handler runs, until another process has taken over its delivery; then both try to commit.
 * - `deploy`: the processes are drained one after the other, and restart with one more handler.
 * - `cut`: the connections of one process to PostgreSQL are closed.
 * - `partition`: no data passes between one process and PostgreSQL for longer than the lease.
 * - `terminate`: `pg_terminate_backend` for every connection.
 * - `kill-backend`: SIGKILL of one PostgreSQL backend, after which PostgreSQL restarts all backends.
 * - `restart`: PostgreSQL ends by a fast shutdown, an immediate shutdown or SIGKILL, and restarts.
 * - `stop-backends`: SIGSTOP of every process of PostgreSQL that serves connections for longer than the lease, then SIGCONT.
 * - `engine-cut`: the connections of one process to the engine are closed.
 * - `engine-partition`: no data passes between one process and the engine for longer than the lease.
 * - `engine-kill`: SIGKILL of the engine, which then restarts.
 * - `engine-stop`: SIGSTOP of the engine for longer than the lease, then SIGCONT.
 * - `engine-restart`: the engine ends in order, and restarts.
 */
export type FaultKind =
  ProcessFaultKind | ServerFaultKind | EngineFaultKind | 'deploy' | 'takeover';
export type ProcessFaultKind =
  | 'kill'
  | 'stop'
  | 'block'
  | 'drain'
  | 'clock'
  | 'cut'
  | 'partition'
  | 'engine-cut'
  | 'engine-partition';
export type ServerFaultKind = 'terminate' | 'kill-backend' | 'restart' | 'stop-backends';
export type EngineFaultKind = 'engine-kill' | 'engine-stop' | 'engine-restart';

/** A planned fault. */
export interface Fault {
  readonly kind: FaultKind;
  /** The start of the fault, in milliseconds after sending begins. */
  readonly atMs: number;
  /** Number of the process. If that process does not listen, the fault affects the next one. */
  readonly target: number;
  /** Duration of the fault, in milliseconds; for `clock`, the jump of the clock in milliseconds. */
  readonly ms: number;
  /** How PostgreSQL ends, if the fault is a `restart`. */
  readonly restart: 'fast' | 'immediate' | 'crash';
}

const ON_EACH: readonly FaultKind[] = ['kill', 'stop', 'block', 'drain', 'clock'];
const ON_POSTGRES: readonly FaultKind[] = [
  ...ON_EACH,
  'cut',
  'partition',
  'terminate',
  'kill-backend',
  'restart',
];

const ON_ENGINE: readonly FaultKind[] = [
  ...ON_POSTGRES,
  'stop-backends',
  'engine-cut',
  'engine-partition',
  'engine-kill',
  'engine-stop',
  'engine-restart',
];

const KINDS = { sqlite: ON_EACH, postgres: ON_POSTGRES, engine: ON_ENGINE };

const HOUR = 3_600_000;

/**
 * The faults of a chaos run. They depend only on the random numbers and the arguments. Each kind takes place once before
 * a kind repeats. One deploy takes place in the middle, but not with an engine: an event may wait in the engine until the
 * second version has started. The takeover after all other faults is not part of the plan.
 */
export function planFaults(
  random: SeededRandom,
  run: {
    /** The store of one application, or `engine` for services on PostgreSQL with an engine between them. */
    readonly store: keyof typeof KINDS;
    readonly seconds: number;
    readonly processes: number;
    readonly leaseMs: number;
  },
): Fault[] {
  const kinds = KINDS[run.store];
  const endMs = run.seconds * 1000;
  const faults: Fault[] = [];
  const add = (kind: FaultKind, atMs: number): void => {
    faults.push({
      kind,
      atMs,
      target: random.between(0, run.processes - 1),
      ms:
        kind === 'clock'
          ? random.pick([-HOUR, HOUR, random.between(-HOUR, HOUR)])
          : Math.round(run.leaseMs * (1.2 + random.next())),
      restart: random.pick(['fast', 'immediate', 'crash']),
    });
  };
  let queue: FaultKind[] = [];
  // Each kind takes place in a short run, too.
  const maxPauseMs = Math.min(1500, (2 * endMs) / (kinds.length + 2) - 200);
  for (let atMs = 400; atMs < endMs; atMs += random.between(200, Math.max(200, maxPauseMs))) {
    if (queue.length === 0) queue = random.shuffled(kinds);
    add(queue.pop()!, atMs);
  }
  if (run.store !== 'engine') add('deploy', Math.round(endMs * (0.35 + random.next() * 0.2)));
  return faults.toSorted((a, b) => a.atMs - b.atMs);
}
