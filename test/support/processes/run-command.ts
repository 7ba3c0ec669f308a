import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

/** Exit code and output of a command. */
export interface CommandResult {
  /** `null` if a signal ended the command, for example after the time limit. */
  code: number | null;
  stdout: string;
  /** Output of both streams, in the order in which it arrived. */
  output: string;
}

/** Folder, time limit and environment of a command. */
export interface CommandOptions {
  cwd: string;
  /** Milliseconds after which the command is killed. Default: five minutes. */
  timeoutMs?: number;
  env?: NodeJS.ProcessEnv;
}

/** Runs a program until it exits. Rejects only if it cannot be started. */
export async function run(
  program: string,
  args: string[],
  options: CommandOptions,
): Promise<CommandResult> {
  const { cwd, timeoutMs = 300_000, env = environment() } = options;
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, output };
}

/** Like {@link run}, but rejects with the output if the exit code is not 0. */
export async function succeed(
  program: string,
  args: string[],
  options: CommandOptions,
): Promise<CommandResult> {
  const result = await run(program, args, options);
  if (result.code !== 0) {
    throw new Error(`${program} ${args.join(' ')} exited with ${result.code}:\n${result.output}`);
  }
  return result;
}

/** Runs the npm that started this script. The `PATH` of `env` selects the Node for npm and its scripts. */
export function npm(
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv = environment(),
): Promise<CommandResult> {
  const cli = process.env['npm_execpath'];
  return cli !== undefined && /\.c?js$/.test(cli)
    ? succeed('node', [cli, ...args], { cwd, env })
    : succeed('npm', args, { cwd, env });
}

/**
 * Installs a package that is not a workspace from its lockfile, if its packages are missing or the lockfile is newer.
 *
 * @param what a description of the packages, which the log line about their installation contains.
 */
export async function installLocked(folder: string, what: string): Promise<void> {
  const installed = join(folder, 'node_modules/.package-lock.json');
  const lock = join(folder, 'package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  console.log(`Installing ${what} into ${folder} …`);
  await npm(['ci', '--ignore-scripts'], folder);
}

/**
 * The environment of this process without the variables that npm sets for the workspace.
 *
 * @param node path of the Node that is put first in `PATH`. Default: the Node that runs this process.
 */
export function environment(node: string = process.execPath): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local_prefix|config_workspace)/.test(name),
  );
  const path = `${dirname(node)}${delimiter}${process.env['PATH'] ?? ''}`;
  return { ...Object.fromEntries(own), PATH: path, INIT_CWD: undefined, NODE_OPTIONS: undefined };
}
