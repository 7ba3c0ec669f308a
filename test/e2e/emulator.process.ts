import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, jest } from '@jest/globals';

// A process takes its time to start on a busy machine.
jest.setTimeout(60_000);

/** The main file of the command, as built. */
export const EMULATOR = fileURLToPath(new URL('../../libs/emulator/dist/main.js', import.meta.url));

/** Flags for two free ports. */
export const FREE_PORTS = ['--port', '0', '--production-port', '0'];

const started = new Set<ChildProcessByStdio<null, Readable, Readable>>();

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
});

/** Runs `payments-emulator` and collects what it prints. It is killed after the test. */
export function runEmulator(...args: string[]) {
  return runEmulatorWith({}, ...args);
}

/** The same with further environment variables. */
export function runEmulatorWith(env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [EMULATOR, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  started.add(child);
  const printed = { out: '', err: '' };
  child.stdout.on('data', (data: Buffer) => (printed.out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (printed.err += data.toString()));
  const ended = once(child, 'close').then(([code]) => code as number);
  /** What a pattern finds in the output, as soon as it is there. */
  const found = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(printed.out);
      if (match) return match;
      const more = once(child.stdout, 'data').then(() => true);
      if (await Promise.race([more, ended.then(() => false)])) continue;
      throw new Error(`it ended without ${pattern}:\n${printed.out}${printed.err}`);
    }
  };
  return { child, printed, ended, found };
}

/** The lines to paste: everything from the first `export` line to the last, as one text. */
export async function settingsIn({ found }: ReturnType<typeof runEmulator>): Promise<string> {
  const [lines] = await found(/(?:^export \S+=.*\n)+(?=\n)/m);
  return lines;
}

/** Runs the command to its end. */
export async function emulatorCommand(...args: string[]) {
  const { printed, ended } = runEmulator(...args);
  const code = await ended;
  return { code, ...printed };
}
