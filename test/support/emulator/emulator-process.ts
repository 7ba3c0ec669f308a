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
  const emulator = new RunningProcess(process.execPath, [EMULATOR, ...args], { env: process.env });
  started.add(emulator);
  return emulator;
}

/** Runs the command until it ends. */
export async function emulatorCommand(...args: string[]) {
  const emulator = runEmulator(...args);
  const { code } = await emulator.ended;
  return { code, out: emulator.stdout, err: emulator.stderr };
}
