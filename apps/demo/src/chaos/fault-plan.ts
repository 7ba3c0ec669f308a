import type { SeededRandom } from './seeded-random.js';

export type StoreKind = 'sqlite' | 'postgres';

/**
 * - `kill`: SIGKILL; the process starts again at once.
 * - `stop`: SIGSTOP for longer than the lease, then SIGCONT.
 * - `block`: the event loop does nothing else for longer than the lease.
 * - `drain`: SIGTERM; the process starts again when it has ended.
 * - `clock`: the wall clock of the process jumps by up to an hour either way.
 * - `takeover`: SIGSTOP until another process has taken over a delivery that waits, which then tries to commit in both.
 * - `deploy`: every process is drained, one after the other, and starts again with one handler more.
 * - `cut`: the connections of one process to PostgreSQL are cut.
 * - `partition`: nothing passes between one process and PostgreSQL for longer than the lease.
 * - `terminate`: `pg_terminate_backend` for every connection.
 * - `kill-backend`: SIGKILL of one backend of PostgreSQL, which then restarts all of them.
 * - `restart`: PostgreSQL shuts down, quickly or at once, or is killed, and starts again.
 */
export type FaultKind = ProcessFaultKind | ServerFaultKind | 'deploy' | 'takeover';
export type ProcessFaultKind = 'kill' | 'stop' | 'block' | 'drain' | 'clock' | 'cut' | 'partition';
export type ServerFaultKind = 'terminate' | 'kill-backend' | 'restart';

/** One fault of a run. */
export interface Fault {
  readonly kind: FaultKind;
  /** Milliseconds after the traffic begins. */
  readonly atMs: number;
  /** Which process it is for. If that one is not ready, the injector takes the next. */
  readonly target: number;
  /** How long it lasts, in milliseconds; of `clock`, by how much the clock jumps. */
  readonly amount: number;
  /** How PostgreSQL ends. */
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

const HOUR = 3_600_000;

/**
 * The faults of a run. They depend on nothing but the random numbers and the arguments. Each kind comes once before
 * any comes again, and a deploy is in the middle.
 */
export function planFaults(
  random: SeededRandom,
  run: {
    readonly store: StoreKind;
    readonly seconds: number;
    readonly processes: number;
    readonly leaseMs: number;
  },
): Fault[] {
  const kinds = run.store === 'sqlite' ? ON_EACH : ON_POSTGRES;
  const endMs = run.seconds * 1000;
  const faults: Fault[] = [];
  const add = (kind: FaultKind, atMs: number): void => {
    faults.push({
      kind,
      atMs,
      target: random.between(0, run.processes - 1),
      amount:
        kind === 'clock'
          ? random.pick([-HOUR, HOUR, random.between(-HOUR, HOUR)])
          : Math.round(run.leaseMs * (1.2 + random.next())),
      restart: random.pick(['fast', 'immediate', 'crash']),
    });
  };
  let queue: FaultKind[] = [];
  // Short runs have room for each kind, too.
  const most = Math.min(1500, (2 * endMs) / (kinds.length + 2) - 200);
  for (let atMs = 400; atMs < endMs; atMs += random.between(200, Math.max(200, most))) {
    if (queue.length === 0) queue = random.shuffled(kinds);
    add(queue.pop()!, atMs);
  }
  add('deploy', Math.round(endMs * (0.35 + random.next() * 0.2)));
  return faults.toSorted((a, b) => a.atMs - b.atMs);
}
