import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ENTRY = new URL(
  '../../../libs/payments/dist/stores/sqlite/thread/sqlite-thread.js',
  import.meta.url,
);

/** How the SQLite of a thread differs from that of this Node. */
export interface ChangedSqlite {
  /** Milliseconds for which each commit blocks the thread, except the first commit, which creates the tables. */
  readonly commitMs?: number;
  /** The version that it reports. */
  readonly version?: string;
}

/** Writes the file of a thread whose SQLite is slow or old, for the option `threadPath`. */
export function changedThread(folder: string, { commitMs = 0, version }: ChangedSqlite): string {
  const file = join(folder, `thread-${commitMs}-${version ?? 'own'}.mjs`);
  writeFileSync(
    file,
    `import { DatabaseSync } from 'node:sqlite';
     const { prepare } = DatabaseSync.prototype;
     const version = ${JSON.stringify(version)};
     let slow = false;
     const sleeper = new Int32Array(new SharedArrayBuffer(4));
     DatabaseSync.prototype.prepare = function (sql) {
       if (version && sql.includes('sqlite_version()')) return { get: () => ({ version }) };
       const statement = prepare.call(this, sql);
       if (sql !== 'COMMIT') return statement;
       const run = statement.run.bind(statement);
       statement.run = (...values) => {
         const result = run(...values);
         if (slow) Atomics.wait(sleeper, 0, 0, ${commitMs});
         slow = true;
         return result;
       };
       return statement;
     };
     await import(${JSON.stringify(ENTRY.href)});`,
  );
  return file;
}
