import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, jest } from '@jest/globals';

// Starting a process can take long on a busy machine.
jest.setTimeout(60_000);

/** The built main file of the command. */
export const EMULATOR = fileURLToPath(
  new URL('../../../libs/emulator/dist/main.js', import.meta.url),
);

/** Flags that select two free ports. */
export const FREE_PORTS = ['--port', '0', '--production-port', '0'];

const started = new Set<ChildProcessByStdio<null, Readable, Readable>>();

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
});

/** Starts `payments-emulator` and collects its output. It is killed after the test. */
export function runEmulator(...args: string[]) {
  return runEmulatorWith({}, ...args);
}

/** Like {@link runEmulator}, with additional environment variables. */
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
  /** Resolves with the match of a pattern as soon as the output contains it. */
  const found = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(printed.out);
      if (match) return match;
      const more = once(child.stdout, 'data').then(() => true);
      if (await Promise.race([more, ended.then(() => false)])) continue;
      throw new Error(`the emulator ended without ${pattern}:\n${printed.out}${printed.err}`);
    }
  };
  return { child, printed, ended, found };
}

/** Returns the printed `export` lines as one text. */
export async function settingsIn({ found }: ReturnType<typeof runEmulator>): Promise<string> {
  const [lines] = await found(/(?:^export \S+=.*\n)+(?=\n)/m);
  return lines;
}

/** Runs the command until it ends. */
export async function emulatorCommand(...args: string[]) {
  const { printed, ended } = runEmulator(...args);
  const code = await ended;
  return { code, ...printed };
}
