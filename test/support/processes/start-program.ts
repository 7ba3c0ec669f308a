import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RunningProcess } from './running-process.ts';

/**
 * Starts a built program of the repository, such as `apps/shop/dist/main.js`. The folder for its data is removed when
 * the program ends, unless `SHOP_DATA` sets another folder.
 */
export function startProgram(
  file: string,
  settings: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  cwd = tmpdir(),
): RunningProcess {
  const path = fileURLToPath(new URL(`../../../${file}`, import.meta.url));
  if (!existsSync(path)) throw new Error(`${file} is missing: run "npm run build" first`);
  // The program does not get the environment and the .env of the developer, so that the test behaves the same on all
  // machines.
  const data = mkdtempSync(join(tmpdir(), 'shop-data-'));
  const env = { PATH: process.env['PATH'], SHOP_DATA: data, ...settings };
  const running = new RunningProcess(process.execPath, [path, ...args], { cwd, env });
  void running.ended.then(() => rmSync(data, { recursive: true, force: true }));
  return running;
}

/** What a script prints in a process of its own, which imports the package as an application does. */
export async function printedBy(script: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', script],
    { cwd: import.meta.dirname },
  );
  return stdout.trim();
}
