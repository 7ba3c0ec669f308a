/**
 * Installs the packed packages into applications like those of users, and checks that they compile and run.
 *
 * npm run smoke                      a representative selection of every part, as CI runs it
 * npm run smoke -- nest11 bundlers   only these parts
 * npm run smoke -- --all             the whole matrix, before a release
 * npm run smoke -- --jobs 1          one part at a time, with each line printed at once (default: two parts at a time)
 * npm run smoke -- --list            prints the parts
 */
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ENGINE_PACKAGES } from '../../release/workspace.ts';
import { Checks } from './checks.ts';
import { installOldestNode } from './oldest-node.ts';
import { PackedPackage } from './packed-package.ts';
import type { NodeProgram, SmokeContext, SmokePart } from './smoke-part.ts';

/** The promises about applications. `--all` fails if one of them has no check. */
const PROMISES = [
  ...Array.from({ length: 17 }, (_, index) => `AP-${String(index + 1).padStart(2, '0')}`),
  'AP-21',
  'AP-23',
];

const { values: flags, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '2' },
  },
});
const root = resolve(import.meta.dirname, '../..');
const parts = await loadParts();
if (flags.list) {
  for (const [name, { description }] of parts) console.log(`${name.padEnd(18)} ${description}`);
  process.exit(0);
}
const unknown = names.filter((name) => !parts.has(name));
if (unknown.length > 0) {
  console.error(
    `There is no part ${unknown.join(', ')}. The parts are ${[...parts.keys()].join(', ')}.`,
  );
  process.exit(2);
}

const jobs = Number(flags.jobs);
if (!Number.isInteger(jobs) || jobs < 1) {
  console.error(`--jobs must be a whole number of parts from 1; it is "${flags.jobs}".`);
  process.exit(2);
}

const temporary = await mkdtemp(join(await realpath(tmpdir()), 'nestjs-payments-smoke-'));
process.once('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const checks = new Checks();
await runParts();
for (const line of checks.promises) console.log(line);
if (flags.all && names.length === 0) {
  const missing = PROMISES.filter((id) => !checks.covers(id));
  if (missing.length > 0)
    checks.record('every promise has a check', `no check for ${missing.join(', ')}`);
}
console.log(checks.summary);
process.exitCode = checks.failed ? 1 : 0;

async function loadParts(): Promise<Map<string, SmokePart>> {
  const folder = join(import.meta.dirname, 'parts');
  const files = (await readdir(folder)).filter((file) => file.endsWith('.ts')).toSorted();
  const found = new Map<string, SmokePart>();
  for (const file of files) {
    const { part } = (await import(join(folder, file))) as { part: SmokePart };
    found.set(file.replace(/\.ts$/, ''), part);
  }
  return found;
}

async function runParts(): Promise<void> {
  const payments = await PackedPackage.pack(root, 'libs/payments', temporary);
  const consolePackage = await PackedPackage.pack(root, 'libs/console', temporary);
  const emulator = await PackedPackage.pack(root, 'libs/emulator', temporary);
  const engines: PackedPackage[] = [];
  for (const engine of ENGINE_PACKAGES) {
    engines.push(await PackedPackage.pack(root, engine, temporary));
  }
  let oldest: Promise<NodeProgram> | undefined;
  const oldestNode = (): Promise<NodeProgram> =>
    (oldest ??= installOldestNode(root, join(temporary, 'oldest-node')));
  const node = { path: process.execPath, name: `Node ${process.versions.node}` };
  const packages = { payments, consolePackage, emulator, engines };
  const shared = { root, ...packages, all: flags.all, node, oldestNode };
  const waiting = [...parts].filter(([name]) => names.length === 0 || names.includes(name));
  const parallel = Math.min(jobs, waiting.length);
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        await runPart(next[0], next[1], shared, parallel === 1);
      }
    }),
  );
}

/** Runs one part. If several parts run at the same time, the lines of a part are printed together at its end. */
async function runPart(
  name: string,
  part: SmokePart,
  shared: Omit<SmokeContext, 'folder'>,
  alone: boolean,
): Promise<void> {
  const lines: string[] = [];
  const print = (line: string): void => void (alone ? console.log(line) : lines.push(line));
  const partChecks = new Checks(print);
  print(`\n${name}: ${part.description}`);
  const startMs = performance.now();
  const folder = join(temporary, name);
  await mkdir(folder);
  await partChecks.that(`${name}: completes`, () => part.run({ ...shared, folder }, partChecks));
  partChecks.note(`${((performance.now() - startMs) / 1000).toFixed(0)} s`);
  if (!alone) console.log(lines.join('\n'));
  checks.add(partChecks);
  // The applications of a part need up to a gigabyte of disk space.
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
