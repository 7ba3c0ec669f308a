/**
 * Builds the documentation site. The first run installs its tools into `docs/node_modules`.
 *
 * npm run docs         writes the site to docs/.vitepress/dist; fails if a link is broken
 * npm run docs:dev     serves it and reloads changed pages
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { environment, installLocked } from '../../test/support/processes/run-command.ts';

const docs = resolve(import.meta.dirname, '..');
const command = process.argv[2] === 'dev' ? 'dev' : 'build';

await installLocked(docs, 'the tools of the documentation site');
await runTool(['node_modules/typedoc/bin/typedoc', '--options', '.vitepress/typedoc.json']);
await runTool(['node_modules/vitepress/bin/vitepress.js', command, '.']);

/** Runs a tool whose output the user reads. Exits with its exit code if it fails. */
async function runTool(args: string[]): Promise<void> {
  const tool = spawn(process.execPath, args, {
    cwd: docs,
    env: environment(),
    stdio: 'inherit',
  });
  const [code] = (await once(tool, 'exit')) as [number | null];
  if (code !== 0) process.exit(code ?? 1);
}
