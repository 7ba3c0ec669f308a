import { afterEach } from '@jest/globals';
import { runCommand } from '../../../libs/emulator/src/command/run-command.js';
import type { PaymentsEmulator } from '../../../libs/emulator/src/payments-emulator.js';
import { FREE_PORTS } from './emulator-process.js';

const started = new Set<PaymentsEmulator>();

afterEach(async () => {
  await Promise.all(Array.from(started, (emulator) => emulator.close()));
  started.clear();
});

/** Runs a command line of `payments-emulator` in this process. An emulator that it starts is closed after the test. */
export async function commandInProcess(...args: string[]) {
  const printed = { out: '', err: '' };
  const result = await runCommand(args, {
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
  });
  if (typeof result === 'number') return { ...printed, code: result, emulator: undefined };
  started.add(result);
  return { ...printed, code: undefined, emulator: result };
}

/** Starts an emulator on free ports. Returns it, and what the command printed. */
export async function emulatorInProcess(...flags: string[]) {
  const { out, err, emulator } = await commandInProcess(...FREE_PORTS, ...flags);
  if (emulator === undefined) throw new Error(err);
  return { out, emulator };
}
