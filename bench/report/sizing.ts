import { median } from '../rounds/statistics.ts';
import { figure } from './figures.ts';
import type { Results } from './results.ts';
import { markdownTable } from './tables.ts';

/** What one event costs, measured. */
export interface Costs {
  /** Of the application: receiving, storing and handling (by a handler that does nothing), in milliseconds of processor. */
  readonly appCpuMs: number;
  /** Of PostgreSQL. */
  readonly databaseCpuMs: number;
  readonly walBytes: number;
  /** On disk, indexes included, while the event is kept whole. */
  readonly storedBytes: number;
}

/** What a rate of events needs. */
export interface Size {
  readonly instances: number;
  readonly databaseCores: number;
  readonly connections: number;
  readonly walMbPerSecond: number;
  readonly diskGb: number;
}

/** A core is planned to be busy for this share: the rest is for bursts, deployments and a lost instance. */
const PLANNED_LOAD = 0.5;
/** One may be lost, or be replaced, without a delivery being refused. */
const LEAST_INSTANCES = 2;
/** An instance's pool at its default, and the connection on which it is told of new deliveries. */
const CONNECTIONS_PER_INSTANCE = 11;
/** `worker.keepMs` at its default. */
const KEPT_SECONDS = 7 * 86_400;

/** An instance is a process, and a process is a core. */
export function sizeFor(eventsPerSecond: number, costs: Costs): Size {
  const cores = (ms: number): number => (eventsPerSecond * ms) / 1000 / PLANNED_LOAD;
  const instances = Math.max(LEAST_INSTANCES, Math.ceil(cores(costs.appCpuMs)));
  return {
    instances,
    databaseCores: Math.max(1, Math.ceil(cores(costs.databaseCpuMs))),
    connections: instances * CONNECTIONS_PER_INSTANCE,
    walMbPerSecond: (eventsPerSecond * costs.walBytes) / 1e6,
    diskGb: (eventsPerSecond * KEPT_SECONDS * costs.storedBytes) / 1e9,
  };
}

/** The costs, of the rows that measure them; `null` where one was not run. */
export function costsOf(results: Results): Costs | null {
  const receive = results['receive-postgres']?.tables[0]?.contenders[0]?.rounds ?? [];
  const growth = results['growth-postgres']?.tables[0];
  const largest = growth?.contenders[0]?.rounds ?? [];
  const of = (rounds: typeof receive, name: string): number =>
    median(rounds.map(({ more }) => more?.[name] ?? Number.NaN));
  const costs = {
    appCpuMs: of(receive, 'cpuMsPerEvent'),
    databaseCpuMs: of(receive, 'databaseCpuMsPerEvent'),
    walBytes: of(receive, 'walBytesPerEvent'),
    storedBytes: of(largest, 'bytesPerEvent'),
  };
  return Object.values(costs).every(Number.isFinite) ? costs : null;
}

export function sizing(results: Results): string {
  const costs = costsOf(results);
  if (costs === null) return '_The rows receive-postgres and growth-postgres have not been run._';
  const [small, large] = [sizeFor(10, costs), sizeFor(10_000, costs)];
  const row = (what: string, pick: (size: Size) => number): string[] => [
    what,
    figure(pick(small)),
    figure(pick(large)),
  ];
  return [
    markdownTable([
      ['an event costs', ''],
      ['processor of the application', `${figure(costs.appCpuMs)} ms`],
      ['processor of PostgreSQL', `${figure(costs.databaseCpuMs)} ms`],
      ['write-ahead log', `${figure(costs.walBytes)} bytes`],
      ['disk, while it is kept whole', `${figure(costs.storedBytes)} bytes`],
    ]),
    markdownTable([
      ['', 'one company, 10 events/s', 'ten thousand companies, 10,000 events/s'],
      row('instances, of one core each', ({ instances }) => instances),
      row('cores of PostgreSQL', ({ databaseCores }) => databaseCores),
      row('connections', ({ connections }) => connections),
      row('write-ahead log, MB/s', ({ walMbPerSecond }) => walMbPerSecond),
      row('disk for seven days of whole events, GB', ({ diskGb }) => diskGb),
    ]),
  ].join('\n\n');
}
