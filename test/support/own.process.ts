import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What a script prints in a process of its own, which imports the package as an application does. */
export async function printedBy(script: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', script],
    { cwd: import.meta.dirname },
  );
  return stdout.trim();
}
