/**
 * Builds the documentation site. The first run installs its tools into `docs/node_modules`.
 *
 * npm run docs         writes the site to docs/.vitepress/dist; fails if a link is broken
 * npm run docs:dev     serves it and reloads changed pages
 */
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const docs = resolve(import.meta.dirname, '..');
const command = process.argv[2] === 'dev' ? 'dev' : 'build';

install();
run(process.execPath, ['node_modules/typedoc/bin/typedoc', '--options', '.vitepress/typedoc.json']);
run(process.execPath, ['node_modules/vitepress/bin/vitepress.js', command, '.']);

/** Installs the tools if they are missing, or if the lockfile is newer. */
function install(): void {
  const installed = join(docs, 'node_modules/.package-lock.json');
  const lock = join(docs, 'package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  console.log('Installing the tools of the documentation site into docs/ …');
  const cli = process.env['npm_execpath'];
  if (cli === undefined) run('npm', ['ci', '--ignore-scripts']);
  else run(process.execPath, [cli, 'ci', '--ignore-scripts']);
}

function run(program: string, args: string[]): void {
  const env = Object.fromEntries(
    // npm sets these variables for the root package. They are wrong for this one.
    Object.entries(process.env).filter(
      ([name]) => !/^npm_(package|lifecycle|config_local)/.test(name),
    ),
  );
  const { status } = spawnSync(program, args, { cwd: docs, env, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
