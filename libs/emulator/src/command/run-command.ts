import { readFileSync } from 'node:fs';
import { EmulatorInputError, messageOf } from '../emulator-errors.js';
import type { PaymentsEmulatorOptions } from '../emulator-options.js';
import { PaymentsEmulator } from '../payments-emulator.js';
import type { StartCommand } from './command-flags.js';
import { CommandLineError, parseCommandLine } from './command-flags.js';
import { HELP } from './command-help.js';
import { describeDelivery, describeStart } from './command-output.js';
import type { CommandOutput } from './command-output.js';
import { CONTROL_COMMANDS, runControl } from './control-command.js';
import { DELIVERY_COMMANDS, runDeliveryCommand } from './delivery-commands.js';
import { saveEnvFile } from './env-file.js';
import { describeListenFailure } from './listen-failure.js';
import { applicationSettings } from './application-settings.js';
import { runTrigger } from './trigger-command.js';

/** A running emulator, or the exit code of a command that started no emulator. */
export type CommandResult = PaymentsEmulator | 0 | 1 | 2;

/** Runs a command line. Resolves when the emulator listens or the command has ended. Never rejects. */
export async function runCommand(args: string[], output: CommandOutput): Promise<CommandResult> {
  try {
    if (args[0] === 'trigger') return await runTrigger(args.slice(1), output);
    if (isControl(args)) return await runControl(args, output);
    if (isDelivery(args)) return await runDeliveryCommand(args, output);
    const command = parseCommandLine(args);
    if (command.do === 'help') output.out(HELP);
    if (command.do === 'version') output.out(`${readVersion()}\n`);
    return command.do === 'start' ? await start(command, output) : 0;
  } catch (error) {
    const invalid = error instanceof CommandLineError || error instanceof EmulatorInputError;
    const message =
      error instanceof EmulatorInputError
        ? error.problems.map((problem) => problem.replace(/^\w+/, nameFlag)).join('; ')
        : messageOf(error);
    const ofRunning = args[0] === 'trigger' || isControl(args) || isDelivery(args);
    const command = ofRunning ? `payments-emulator ${args[0]}` : 'payments-emulator';
    const hint = invalid ? `${command} --help lists the flags.\n` : '';
    output.err(`payments-emulator: ${message}\n${hint}`);
    return invalid ? 2 : 1;
  }
}

function isControl([command = '']: readonly string[]): boolean {
  return CONTROL_COMMANDS.includes(command);
}

function isDelivery([command = '']: readonly string[]): boolean {
  return DELIVERY_COMMANDS.includes(command);
}

async function start(
  { options, quiet, envFile }: StartCommand,
  output: CommandOutput,
): Promise<PaymentsEmulator> {
  const emulator = await listen({
    ...options,
    onDelivery: (delivery) => {
      if (!quiet) output.out(`${describeDelivery(delivery)}\n`);
    },
  });
  try {
    if (envFile !== undefined) await saveEnvFile(envFile, applicationSettings(emulator));
    output.out(describeStart(emulator, envFile));
    return emulator;
  } catch (error) {
    await emulator.close();
    throw error;
  }
}

async function listen(options: PaymentsEmulatorOptions): Promise<PaymentsEmulator> {
  try {
    return await PaymentsEmulator.start(options);
  } catch (error) {
    const message = describeListenFailure(error, options);
    throw message === undefined ? error : new Error(message, { cause: error });
  }
}

/** Returns the flag that sets an option, or the name of the option if it has no flag. */
function nameFlag(option: string): string {
  const flag = `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return HELP.includes(`${flag} `) ? flag : option;
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
