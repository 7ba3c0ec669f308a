import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import type { PoolClient } from 'pg';
import { fixed } from '../../libs/payments/dist/events/retry-schedule.js';
import { postgresInbox } from '../../libs/payments/dist/stores/postgres/index.js';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { systemRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import { BEHAVIOURS } from './handler-behaviour.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import { RealTimeline } from './real-timeline.ts';
import { EVERY_STEP } from './scenario.ts';
import type { Scenario, ScenarioBounds } from './scenario.ts';
import type { ApplicationTimes } from './simulated-application.ts';
import { Simulation } from './simulation.ts';

/** Shorter times than in virtual time, except the lease, which has a lower bound. */
const REAL_TIMES: ApplicationTimes = {
  workMs: 40,
  slowCommitMs: 300,
  timeoutMs: 500,
  leaseMs: 1_000,
  drainMs: 200,
  retry: fixed([20, 50, 100]),
  downMs: 50,
  resendMs: 500,
  closingMs: 100,
  slowMs: 700,
  polls: [50, 250, 1_000],
};
/**
 * The bounds of scenarios in real time. They exclude steps that set the wall clock, because a test cannot set it. They
 * exclude a service that hangs, because a poll waits 20 s for the service. They also exclude handlers that outlast the
 * grace period of a drain.
 */
export const REAL: ScenarioBounds = {
  maxSteps: 25,
  behaviours: BEHAVIOURS.filter((one) => one !== 'ignore the signal'),
  steps: new Set(
    [...EVERY_STEP].filter((step) => step !== 'set the wall clock' && step !== 'service hangs'),
  ),
  timeScale: 1 / 20,
  maxMs: 1_500,
};
const SETTLE_MS = 60_000;

/** Plays a scenario in real time, on a new SQLite file. Returns the violations. */
export async function playInSqlite(
  scenario: Scenario,
  trace?: (line: string) => void,
): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'simulation-'));
  const file = join(folder, 'inbox.db');
  const ledger = new DatabaseSync(file);
  ledger.exec('PRAGMA journal_mode = WAL; CREATE TABLE effect (name TEXT NOT NULL) STRICT');
  const definition = sqliteInbox({ file });
  try {
    return await play(
      scenario,
      definition.create(systemRuntime),
      {
        connect: (runtime) => definition.create(runtime),
        synchronous: true,
        write: (tx, effect) => {
          (tx as SqliteTransaction).prepare('INSERT INTO effect VALUES (?)').run(effect);
        },
        effects: async () =>
          ledger
            .prepare('SELECT name FROM effect')
            .all()
            .map(({ name }) => String(name)),
      },
      trace,
    );
  } finally {
    ledger.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Plays a scenario in real time, on a new PostgreSQL database. Returns the violations. */
export async function playInPostgres(
  scenario: Scenario,
  connectionString: string,
  trace?: (line: string) => void,
): Promise<string[]> {
  const pool = new Pool({ connectionString, max: 2 });
  await pool.query('CREATE TABLE effect (name text NOT NULL)');
  const definition = postgresInbox({ connectionString, poolSize: 6, pollMs: 500 });
  try {
    return await play(
      scenario,
      definition.create(systemRuntime),
      {
        connect: (runtime) => definition.create(runtime),
        synchronous: false,
        write: async (tx, effect) => {
          await (tx as PoolClient).query('INSERT INTO public.effect VALUES ($1)', [effect]);
        },
        effects: async () => {
          const { rows } = await pool.query<{ name: string }>('SELECT name FROM effect');
          return rows.map(({ name }) => name);
        },
      },
      trace,
    );
  } finally {
    await pool.end();
  }
}

async function play(
  scenario: Scenario,
  store: InboxStore,
  database: Omit<SimulatedDatabase, 'store'>,
  trace: ((line: string) => void) | undefined,
): Promise<string[]> {
  const timeline = new RealTimeline();
  await store.open();
  const simulation = new Simulation(scenario, {
    timeline,
    database: { store, ...database },
    times: REAL_TIMES,
    exact: false,
    setWallClock: () => {},
    settleMs: SETTLE_MS,
    ...(trace && { trace }),
  });
  try {
    return await simulation.run();
  } finally {
    await simulation.end();
    timeline.stop();
    await store.close();
  }
}
