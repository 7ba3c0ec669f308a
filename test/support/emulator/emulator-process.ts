import { fileURLToPath } from 'node:url';
import { afterEach } from '@jest/globals';
import { RunningProcess } from '../processes/running-process.ts';

/** The built main file of the command. */
export const EMULATOR = fileURLToPath(
  new URL('../../../libs/emulator/dist/main.js', import.meta.url),
);

/** Flags that select two free ports. */
export const FREE_PORTS = ['--port', '0', '--production-port', '0'];

const started = new Set<RunningProcess>();

afterEach(async () => {
  await Promise.all(Array.from(started, (emulator) => emulator.kill()));
  started.clear();
});

/** Starts `payments-emulator`. It is killed after the test. */
export function runEmulator(...args: string[]): RunningProcess {
  return runEmulatorWith({}, ...args);
}

/** Like {@link runEmulator}, with additional environment variables. */
export function runEmulatorWith(env: Record<string, string>, ...args: string[]): RunningProcess {
  const emulator = new RunningProcess(process.execPath, [EMULATOR, ...args], {
    env: { ...process.env, ...env },
  });
  started.add(emulator);
  return emulator;
}

/** Returns the printed `export` lines as one text. */
export async function settingsIn(emulator: RunningProcess): Promise<string> {
  const [lines] = await emulator.until(() => /(?:^export \S+=.*\n)+(?=\n)/m.exec(emulator.stdout));
  return lines;
}

/** Runs the command until it ends. */
export async function emulatorCommand(...args: string[]) {
  const emulator = runEmulator(...args);
  const { code } = await emulator.ended;
  return { code, out: emulator.stdout, err: emulator.stderr };
}
