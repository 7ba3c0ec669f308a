/**
 * Releases the packages of `libs/`, all with one version.
 *
 * npm run release                                   checks everything and packs, but publishes nothing
 * npm run release -- --version 0.2.0                sets the version in every package first
 * npm run release -- --repository acme/payments     sets the addresses of the repository in every package first
 * npm run release -- --publish                      checks, publishes to npm, and tags the commit
 *
 * If --publish fails half-way, run it again on the same commit: it skips what the registry contains already.
 */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  isPublished,
  publishArguments,
  readWorkspace,
  releaseProblems,
  setRepository,
  setVersion,
  writeManifests,
  writeVersion,
} from './workspace.ts';

const { values: flags } = parseArgs({
  options: {
    version: { type: 'string' },
    repository: { type: 'string' },
    publish: { type: 'boolean', default: false },
  },
});
const root = resolve(import.meta.dirname, '..');
const workspace = await readWorkspace(root);

if (flags.version !== undefined) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(flags.version)) {
    end(`--version must be like 1.2.3 or 1.2.3-beta.1; it is "${flags.version}".`);
  }
  setVersion(workspace, flags.version);
}
if (flags.repository !== undefined) {
  if (!/^[\w.-]+\/[\w.-]+$/.test(flags.repository)) {
    end(`--repository must be like owner/name; it is "${flags.repository}".`);
  }
  setRepository(workspace, flags.repository);
}
if (flags.version !== undefined) await writeVersion(root, flags.version);
if (flags.version !== undefined || flags.repository !== undefined) {
  await writeManifests(root, workspace);
  run('npm', ['install', '--package-lock-only', '--ignore-scripts']);
}

const problems = releaseProblems(workspace, flags.publish);
if (problems.length > 0) end(problems.join('\n'));
const version = [...workspace.packages.values()][0]?.version;
const tag = `v${version}`;
if (flags.publish) {
  if (output('git', ['status', '--porcelain']) !== '') end('Commit or remove all changes first.');
  if (output('git', ['tag', '--list', tag]) !== '') end(`The tag ${tag} exists already.`);
}

// Packs the packages, and checks the tarballs: their files, their dependencies, publint and attw.
run('npm', ['run', 'smoke', '--', 'packages']);
if (flags.publish) {
  for (const [folder, manifest] of workspace.packages) {
    if (await isPublished(manifest)) {
      console.log(`release: the registry contains ${manifest.name} ${version} already.`);
    } else {
      run('npm', publishArguments(folder, manifest));
    }
  }
  run('git', ['tag', tag]);
  console.log(`release: ${version} is published. Push the tag: git push origin ${tag}`);
} else {
  console.log(`release: ${version} is ready. Nothing was published. With --publish, this runs:`);
  for (const [folder, manifest] of workspace.packages) {
    console.log(`  npm ${publishArguments(folder, manifest).join(' ')}`);
  }
  console.log(`  git tag ${tag}`);
}

function run(program: string, args: string[]): void {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0)
    end(
      `"${program} ${args.join(' ')}" failed. Nothing after it was done; the same command continues.`,
    );
}

function output(program: string, args: string[]): string {
  return spawnSync(program, args, { cwd: root, encoding: 'utf8' }).stdout.trim();
}

function end(message: string): never {
  console.error(message);
  process.exit(1);
}
