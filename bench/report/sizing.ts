import type { Results } from './results.ts';
import { figure, markdownTable } from './tables.ts';

/** The measured costs of one event. */
export interface Costs {
  /** Processor time of the application to receive, store and handle an event, in milliseconds. The handler does nothing. */
  readonly appCpuMs: number;
  /** Processor time of PostgreSQL in milliseconds. */
  readonly databaseCpuMs: number;
  readonly walBytes: number;
  /** Bytes on disk, including indexes, while the body of the event is stored. */
  readonly storedBytes: number;
}

/** The resources for a rate of events. */
export interface Size {
  readonly instances: number;
  readonly databaseCores: number;
  readonly connections: number;
  readonly walMbPerSecond: number;
  readonly diskGb: number;
}

/** The planned load of a core, from 0 to 1. The rest is for bursts, deployments and a lost instance. */
const PLANNED_LOAD = 0.5;
/** One instance can fail or be replaced while the other instance accepts webhook requests. */
const MIN_INSTANCES = 2;
/** The default pool of an instance, and its connection for notifications of new deliveries. */
const CONNECTIONS_PER_INSTANCE = 13;
/** The default of `worker.retainEventsMs`, in seconds. */
const KEPT_SECONDS = 7 * 86_400;

/** Returns the resources for a rate of events. Each instance is one process and uses one core. */
export function sizeFor(eventsPerSecond: number, costs: Costs): Size {
  const cores = (ms: number): number => (eventsPerSecond * ms) / 1000 / PLANNED_LOAD;
  const instances = Math.max(MIN_INSTANCES, Math.ceil(cores(costs.appCpuMs)));
  return {
    instances,
    databaseCores: Math.max(1, Math.ceil(cores(costs.databaseCpuMs))),
    connections: instances * CONNECTIONS_PER_INSTANCE,
    walMbPerSecond: (eventsPerSecond * costs.walBytes) / 1e6,
    diskGb: (eventsPerSecond * KEPT_SECONDS * costs.storedBytes) / 1e9,
  };
}

/** Returns the costs that the rows measured, or `null` if a row that measures one of these costs was not run. */
export function costsOf(results: Results): Costs | null {
  const medians = (row: string) => results[row]?.tables[0]?.contenders[0]?.more;
  const receive = medians('receive-postgres');
  const costs = {
    appCpuMs: receive?.['cpuMsPerEvent'] ?? NaN,
    databaseCpuMs: receive?.['databaseCpuMsPerEvent'] ?? NaN,
    walBytes: receive?.['walBytesPerEvent'] ?? NaN,
    storedBytes: medians('growth-postgres')?.['bytesPerEvent'] ?? NaN,
  };
  return Object.values(costs).every(Number.isFinite) ? costs : null;
}

/** The sizing section of the page, in Markdown. */
export function sizing(costs: Costs): string {
  const [small, large] = [sizeFor(10, costs), sizeFor(10_000, costs)];
  const row = (what: string, pick: (size: Size) => number): string[] => [
    what,
    figure(pick(small)),
    figure(pick(large)),
  ];
  return [
    markdownTable([
      ['cost of one event', ''],
      ['processor time of the application', `${figure(costs.appCpuMs)} ms`],
      ['processor time of PostgreSQL', `${figure(costs.databaseCpuMs)} ms`],
      ['write-ahead log', `${figure(costs.walBytes)} bytes`],
      ['disk, while the body of the event is stored', `${figure(costs.storedBytes)} bytes`],
    ]),
    markdownTable([
      ['', 'one company, 10 events/s', 'ten thousand companies, 10,000 events/s'],
      row('instances, of one core each', ({ instances }) => instances),
      row('cores of PostgreSQL', ({ databaseCores }) => databaseCores),
      row('connections', ({ connections }) => connections),
      row('write-ahead log, MB/s', ({ walMbPerSecond }) => walMbPerSecond),
      row('disk for seven days of events with bodies, GB', ({ diskGb }) => diskGb),
    ]),
  ].join('\n\n');
}
