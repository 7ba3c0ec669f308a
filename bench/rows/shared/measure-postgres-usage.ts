import { readFileSync } from 'node:fs';
import type { PostgresServer } from 'test-postgres';

/** The resources that a PostgreSQL server on this machine has used so far. */
export interface PostgresUsage {
  /** Processor time of the running processes of the server. `NaN` if the system has no `/proc`. */
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

/**
 * Returns a function for the processor time of the connections to a database. Each call of this function returns the
 * time that the connections have used since `connectionClock` was called. Call the function every few seconds: it does
 * not count the time that a connection uses after the last call and before the end of the connection.
 */
export async function connectionClock(
  server: PostgresServer,
  url: string,
): Promise<() => Promise<number>> {
  const used = new Map<number, number>();
  const read = async (): Promise<number> => {
    const rows = await server.query<{ pid: number }>(
      url,
      `SELECT pid FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()`,
    );
    for (const { pid } of rows) {
      const cpuMs = cpuMsOf(pid);
      if (Number.isFinite(cpuMs)) used.set(pid, cpuMs);
    }
    return [...used.values()].reduce((sum, one) => sum + one, 0);
  };
  const before = await read();
  return async () => (await read()) - before;
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
