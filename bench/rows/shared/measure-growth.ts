import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import type { Contender, Scale, Table, Target } from '../../rounds/row.ts';
import { atMost } from '../../rounds/row.ts';
import { quantile } from '../../rounds/statistics.ts';
import { claim, incoming, concurrently, receive } from './run-store-operations.ts';

/** A store with many finished events. */
export interface GrownStore {
  readonly events: number;
  readonly store: InboxStore;
  /** Id of a registered worker. */
  readonly worker: string;
  /** Bytes on disk, with indexes. */
  readonly bytes: number;
}

/** Numbers of finished events in the compared stores. */
export function sizesOf({ quick }: Scale): number[] {
  return quick ? [1000, 10_000] : [10_000, 100_000, 1_000_000];
}

/** Runs an operation and returns its duration in milliseconds. */
type Measure = (grown: GrownStore) => Promise<number>;

/**
 * Measures frequent operations of stores with different numbers of finished events. The largest store is the first
 * contender.
 */
export function growthTables(stores: readonly GrownStore[], note = ''): Table[] {
  const grown = stores.toSorted((a, b) => b.events - a.events);
  const name = ({ events }: GrownStore): string => `${events.toLocaleString('en')} finished events`;
  const sizes = grown
    .map(
      (one) =>
        `${one.events.toLocaleString('en')} events use ${(one.bytes / 1e6).toFixed(0)} MB on the disk.`,
    )
    .join(' ');
  const [largest, smallest] = [name(grown[0]!), name(grown.at(-1)!)];
  const within = atMost(1.5, largest, smallest, 'at most 1.5 times the smallest store');
  const table = (title: string, measure: Measure, targets: Target[] = []): Table => ({
    title,
    unit: 'ms',
    better: 'lower',
    contenders: grown.map((one): Contender => ({
      name: name(one),
      measure: async () => ({
        value: await measure(one),
        more: { bytesPerEvent: one.bytes / one.events },
      }),
    })),
    targets,
    notes: [`${sizes} ${note}`.trim()],
  });
  return [
    table('Receiving 512 events, 32 at a time', receiveMany, [within]),
    table('Claiming 64 deliveries', claimOnly, [within]),
    table('Claiming and completing 16 deliveries, 16 times', claimAndComplete),
    whilePruning(grown[0]!),
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function repeat(times: number, work: () => Promise<unknown>): Promise<void> {
  for (let left = times; left > 0; left -= 1) await work();
}

async function receiveMany({ store }: GrownStore): Promise<number> {
  const events = Array.from({ length: 512 }, () => incoming());
  return timed(() => concurrently(events, 32, (event) => receive(store, [event])));
}

async function claimOnly({ store, worker }: GrownStore): Promise<number> {
  let leases: Awaited<ReturnType<InboxStore['claim']>> = [];
  const took = await timed(async () => {
    leases = await claim(store, worker, 64);
  });
  if (leases.length < 64) throw new Error(`${leases.length} of 64 deliveries were claimed.`);
  await Promise.all(leases.map((lease) => store.release(lease)));
  return took;
}

async function claimAndComplete({ store, worker }: GrownStore): Promise<number> {
  return timed(() =>
    repeat(16, async () => {
      const leases = await claim(store, worker, 16);
      await Promise.all(leases.map((lease) => store.complete(lease)));
    }),
  );
}

/** Measures the time to receive one event at a time while old events are pruned without a pause. */
function whilePruning({ store }: GrownStore): Table {
  const latencies = async (other: () => Promise<unknown>) => {
    const taken: number[] = [];
    const until = performance.now() + 500;
    const background = (async () => {
      while (performance.now() < until) await other();
    })();
    while (performance.now() < until) taken.push(await timed(() => receive(store, [incoming()])));
    await background;
    return { value: quantile(taken, 0.5) };
  };
  const prune = { bodiesMs: 1, tombstonesMs: 1e15, limit: 500 };
  return {
    title: 'Receiving one event at a time while the largest store is pruned',
    unit: 'ms',
    better: 'lower',
    contenders: [
      {
        name: 'while 500 events at a time are pruned',
        measure: () => latencies(() => store.prune(prune)),
      },
      {
        name: 'without pruning',
        measure: () => latencies(() => new Promise((resolve) => setTimeout(resolve, 50))),
      },
    ],
    targets: [],
  };
}
