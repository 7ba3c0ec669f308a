import { readFileSync } from 'node:fs';
import { EmulatorInputError, messageOf } from '../emulator.errors.js';
import { PaymentsEmulator } from '../payments-emulator.js';
import { CommandLineError, parseCommandLine } from './command.flags.js';
import { HELP } from './command.help.js';
import { describeDelivery, describeStart } from './command.output.js';

/** Where a command writes. */
export interface CommandOutput {
  out(text: string): void;
  err(text: string): void;
}

/** A running emulator to close, or the exit code of a command that has ended. */
export type CommandResult = PaymentsEmulator | 0 | 1 | 2;

/** Runs a command line up to the point where the emulator listens. Never rejects. */
export async function runCommand(args: string[], output: CommandOutput): Promise<CommandResult> {
  try {
    const command = parseCommandLine(args);
    if (command.do === 'help') output.out(HELP);
    if (command.do === 'version') output.out(`${readVersion()}\n`);
    if (command.do !== 'start') return 0;
    const emulator = await PaymentsEmulator.start({
      ...command.options,
      onDelivery: (delivery) => {
        if (!command.quiet) output.out(`${describeDelivery(delivery)}\n`);
      },
    });
    output.out(describeStart(emulator));
    return emulator;
  } catch (error) {
    const wrong = error instanceof CommandLineError || error instanceof EmulatorInputError;
    const message =
      error instanceof EmulatorInputError
        ? error.problems.map((problem) => problem.replace(/^\w+/, nameFlag)).join('; ')
        : messageOf(error);
    output.err(
      `payments-emulator: ${message}\n${wrong ? 'payments-emulator --help lists the flags.\n' : ''}`,
    );
    return wrong ? 2 : 1;
  }
}

/** An option's name as the flag it came from, where it came from one. */
function nameFlag(option: string): string {
  const flag = `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return HELP.includes(`${flag} `) ? flag : option;
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
