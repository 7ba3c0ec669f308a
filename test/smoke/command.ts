import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname } from 'node:path';

/** How a command ended, and what it printed. */
export interface Ended {
  /** `null` where it had to be killed. */
  code: number | null;
  stdout: string;
  /** Both streams, as they came. */
  output: string;
}

/** What a command runs with. */
export interface Surroundings {
  cwd: string;
  /** Killed after this long. Default: five minutes. */
  timeoutMs?: number;
  env?: NodeJS.ProcessEnv;
}

/** Runs a program to its end. Rejects only where it can't be started. */
export async function run(program: string, args: string[], around: Surroundings): Promise<Ended> {
  const { cwd, timeoutMs = 300_000, env = environment() } = around;
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

/** Like {@link run}, but rejects with all that was printed where the exit code is not 0. */
export async function succeed(
  program: string,
  args: string[],
  around: Surroundings,
): Promise<Ended> {
  const ended = await run(program, args, around);
  if (ended.code !== 0) {
    throw new Error(`${program} ${args.join(' ')} ended with ${ended.code}:\n${ended.output}`);
  }
  return ended;
}

/** npm, as the one that started this script. `env` decides which Node it and its scripts run on. */
export function npm(
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv = environment(),
): Promise<Ended> {
  const cli = process.env['npm_execpath'];
  return cli !== undefined && /\.c?js$/.test(cli)
    ? succeed('node', [cli, ...args], { cwd, env })
    : succeed('npm', args, { cwd, env });
}

/**
 * This process's environment without what npm adds about the workspace.
 *
 * @param node the Node that is first in `PATH`. Default: the one that runs this process.
 */
export function environment(node: string = process.execPath): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local_prefix|config_workspace)/.test(name),
  );
  const path = `${dirname(node)}${delimiter}${process.env['PATH'] ?? ''}`;
  return { ...Object.fromEntries(own), PATH: path, INIT_CWD: undefined, NODE_OPTIONS: undefined };
}
