import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startPostgres } from '../../support/postgres/postgres-server.js';
import type { PostgresServer } from '../../support/postgres/postgres-server.js';

const SUPPORT = join(import.meta.dirname, '../../support/executed-files');
const PAGE = join(import.meta.dirname, '../../../docs/architecture.md');

/** The maximum number of files of `libs/payments/src` that may run for one webhook request, for each store. */
const MOST_FILES = { memory: 23, sqlite: 37, postgres: 28 };
type StoreName = keyof typeof MOST_FILES;

/** The files that run between the first byte of a webhook request and the settlement of its delivery, in order. */
async function traceOf(store: StoreName, where: string, folder: string): Promise<string[]> {
  const trace = join(folder, store);
  await promisify(execFile)(
    process.execPath,
    [
      '--import',
      join(SUPPORT, 'record-files.mjs'),
      join(SUPPORT, 'one-webhook-request.mjs'),
      JSON.stringify({ store, where }),
    ],
    { env: { PATH: process.env['PATH'], WEBHOOK_TRACE: trace } },
  );
  return [...new Set(readFileSync(`${trace}.done`, 'utf8').trim().split('\n'))];
}

/** The files outside `stores/` that the page lists for a store. */
function documented(store: StoreName): string[] {
  const page = readFileSync(PAGE, 'utf8');
  const [, section = ''] = page.split('## Path of one webhook request\n');
  const rows = section.split('\n## ')[0]!.matchAll(/^\d+\. `([^`]+)`(?: \(([^)]+)\))?$/gm);
  return Array.from(rows, ([, file, only]) => ({ file: file!, only }))
    .filter(({ only }) => only === undefined || only.split(', ').includes(store))
    .map(({ file }) => file);
}

describe('the files that one webhook request executes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'webhook-trace-'));
  let server: PostgresServer;
  let traces: Readonly<Record<StoreName, string[]>>;
  beforeAll(async () => {
    server = await startPostgres();
    const database = await server.createDatabase();
    const file = join(folder, 'inbox.db');
    const [memory, sqlite, postgres] = await Promise.all([
      traceOf('memory', file, folder),
      traceOf('sqlite', file, folder),
      traceOf('postgres', database, folder),
    ]);
    traces = { memory, sqlite, postgres };
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await server.end();
  });

  it.each(['memory', 'sqlite', 'postgres'] as const)(
    'one webhook request with the store %s runs exactly the files that docs/architecture.md lists',
    (store) => {
      const files = traces[store];
      const engine = files.filter((file) => !file.startsWith('stores/'));
      expect(engine.toSorted()).toEqual(documented(store).toSorted());
      // With a database, the process and the store run at the same time, so only the memory inbox has one order.
      if (store === 'memory') expect(engine).toEqual(documented(store));
      expect(files.length).toBeLessThanOrEqual(MOST_FILES[store]);
    },
  );
});
