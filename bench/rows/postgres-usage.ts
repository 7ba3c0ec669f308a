import { readFileSync } from 'node:fs';
import type { PostgresServer } from 'test-postgres';

/** The resources that a PostgreSQL server on this machine has used so far. */
export interface PostgresUsage {
  /** Processor time of its running processes; `NaN` if the system has no `/proc`. */
  readonly cpuMs: number;
  /** Bytes written to the write-ahead log. */
  readonly walBytes: number;
}

/** A clock tick of Linux is 10 ms. */
const TICK_MS = 10;

export async function postgresUsage(server: PostgresServer, url: string): Promise<PostgresUsage> {
  const [row] = await server.query<{ wal: string; pids: number[] }>(
    url,
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::text AS wal,
            (SELECT array_agg(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()) AS pids`,
  );
  const cpuMs = row!.pids.map(cpuMsOf).reduce((sum, one) => sum + one, 0);
  return { cpuMs, walBytes: Number(row!.wal) };
}

function cpuMsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
