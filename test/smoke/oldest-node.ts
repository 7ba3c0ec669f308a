import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed } from '../support/processes/run-command.ts';
import type { NodeProgram } from './smoke-part.ts';

/**
 * Installs the oldest Node that `engines` allows into its own folder. As a dependency of the workspace, its command `node`
 * would conflict with the pinned Node.
 */
export async function installOldestNode(root: string, folder: string): Promise<NodeProgram> {
  const { engines } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const [, oldest] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? [];
  if (oldest === undefined) {
    throw new Error(`"engines" is not of the form >=22.13: ${engines.node}`);
  }
  const version = `${oldest}.0`;
  await mkdir(folder);
  const manifest = { private: true, dependencies: { node: version }, allowScripts: { node: true } };
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  await npm(['install', '--no-audit', '--no-fund', '--prefer-offline'], folder);
  const path = join(folder, 'node_modules/node/bin/node');
  const { stdout } = await succeed(path, ['--version'], { cwd: folder });
  if (stdout.trim() !== `v${version}`) throw new Error(`it is ${stdout.trim()}, not v${version}`);
  return { path, name: `Node ${version}` };
}
