import { SeededRandom } from '../chaos/seeded-random.ts';
import type { InboxStore, Lease } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { PaymentsRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import { MemoryDatabase } from '../../libs/payments/dist/stores/sqlite/sqlite-memory.js';
import { resolveSqliteOptions } from '../../libs/payments/dist/stores/sqlite/sqlite-options.js';
import { SqliteStore } from '../../libs/payments/dist/stores/sqlite/sqlite-store.js';
import type { SqliteTransaction } from '../../libs/payments/dist/stores/sqlite/sql/commit.js';
import { VIRTUAL_TIMES } from './simulated-application.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import { Simulation } from './simulation.ts';
import type { Scenario } from './scenario.ts';
import { VirtualTimeline } from './virtual-timeline.ts';

const HOUR = 3_600_000;
const SETTINGS = resolveSqliteOptions({ file: ':memory:' });

/** Plays a scenario in virtual time, on a SQLite database in memory. Returns the violations. */
export async function playInMemory(
  scenario: Scenario,
  trace?: (line: string) => void,
): Promise<string[]> {
  const timeline = new VirtualTimeline(new SeededRandom(scenario.seed + 1));
  let jumpMs = 0;
  const memory = await MemoryDatabase.open();
  const database = databaseInMemory(memory, timeline, () => jumpMs);
  await database.store.open();
  const simulation = new Simulation(scenario, {
    timeline,
    database,
    times: VIRTUAL_TIMES,
    exact: true,
    setWallClock: (byMs) => {
      jumpMs += byMs;
      // Stores the jump as the next write of a process would. Otherwise, a process that starts before that write would
      // count the jump as elapsed time.
      memory.committer.run('UPDATE payments_inbox_meta SET wall = wall + ?', [byMs]);
    },
    settleMs: 4 * HOUR,
    ...(trace && { trace }),
  });
  try {
    return await simulation.run();
  } finally {
    await simulation.end();
    await memory.close();
  }
}

/** The wall clock of the database's machine, at the start of a simulation. */
const START = Date.UTC(2026, 0, 1);

/** Creates a database that remains when a simulated process ends. Each process opens its own store on the database. */
function databaseInMemory(
  memory: MemoryDatabase,
  timeline: VirtualTimeline,
  jumpMs: () => number,
): SimulatedDatabase {
  const { database } = memory.committer;
  database.exec('CREATE TABLE effect (name TEXT NOT NULL) STRICT');
  /** The processes run on one machine, so their stores have one wall clock. */
  const connect = (runtime: PaymentsRuntime): InboxStore =>
    slowCommits(
      new SqliteStore(SETTINGS, { ...runtime, now: () => START + timeline.now + jumpMs() }, memory),
    );
  return {
    store: connect({
      now: () => 0,
      monotonic: () => timeline.now,
      random: () => 0.5,
      schedule: (ms, callback) => timeline.schedule(ms, callback),
    }),
    connect,
    synchronous: false,
    write: (tx, effect) => void (tx as string[]).push(effect),
    effects: async () =>
      database
        .prepare('SELECT name FROM effect')
        .all()
        .map((row) => (row as { name: string }).name),
  };
}

/**
 * Returns the store with commits whose work takes time. The work runs before the transaction, which writes the effects
 * of the work.
 */
function slowCommits(store: SqliteStore): InboxStore {
  const commit = async (
    lease: Lease,
    work: (effects: string[]) => unknown,
  ): Promise<{ result: unknown; nextDue: boolean }> => {
    const effects: string[] = [];
    const result = await work(effects);
    const { nextDue } = await store.commit(lease, (tx: SqliteTransaction): void => {
      for (const effect of effects) tx.prepare('INSERT INTO effect VALUES (?)').run(effect);
    });
    return { result, nextDue };
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'commit') return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
