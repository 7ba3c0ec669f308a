import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

/** Milliseconds that a process has to exit after its IPC channel is closed. */
const EXIT_LIMIT_MS = 10_000;

/** The resources that a process has used so far. */
export interface Usage {
  /** Processor time of all threads. */
  readonly cpuMs: number;
}

interface Command {
  readonly id: number;
  readonly command: string;
  readonly value?: unknown;
}

interface CommandResponse {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** Arguments of a process, and what happens to its output. */
export interface CommandProcessOptions {
  /** What {@link configuration} returns in the process. */
  readonly config?: unknown;
  /** Flags of Node. */
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Whether {@link CommandProcess.output} keeps the output. Default: the terminal shows it. */
  readonly keepOutput?: boolean;
}

/** A script that executes commands over IPC, in a process of its own. It exits when this process exits, for any reason. */
export class CommandProcess {
  #output = '';
  #exit: string | undefined;
  #ready: unknown;
  #lastId = 0;
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();

  private constructor(child: ChildProcess, file: string) {
    this.#process = child;
    const killAtExit = (): void => void child.kill('SIGKILL');
    process.once('exit', killAtExit);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    }
    child.on('message', ({ id, value, error }: CommandResponse) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) pending?.resolve(value);
      else pending?.reject(new Error(`${file}: ${error}`));
    });
    child.once('exit', (code, signal) => {
      process.off('exit', killAtExit);
      this.#exit = `${file} exited (${signal ?? code}). Its output:\n${this.#output.slice(-2000)}`;
      for (const { reject } of this.#pending.values()) reject(new Error(this.#exit));
      this.#pending.clear();
    });
  }

  /** Starts a script that calls {@link serveCommands}, and waits until it is ready. */
  static async start(file: string, options: CommandProcessOptions = {}): Promise<CommandProcess> {
    const { config = {}, flags = [], env = process.env, keepOutput = false } = options;
    const output = keepOutput ? 'pipe' : 'inherit';
    const child = fork(file, [JSON.stringify(config)], {
      execArgv: ['--disable-warning=ExperimentalWarning', ...flags],
      env,
      stdio: ['ignore', output, output, 'ipc'],
    });
    const started = new CommandProcess(child, file);
    started.#ready = await started.#responseTo(0);
    return started;
  }

  /** The value that the process sent when it was ready. */
  get ready(): unknown {
    return this.#ready;
  }

  /** The output of the process so far, stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /**
   * Sends a command and resolves with its result.
   *
   * @throws if the command fails or the process ends first
   */
  request<T>(command: string, value?: unknown): Promise<T> {
    if (this.#exit !== undefined) return Promise.reject(new Error(this.#exit));
    const id = (this.#lastId += 1);
    const response = this.#responseTo(id);
    this.#process.send({ id, command, value } satisfies Command, (error) => {
      if (error) this.#pending.get(id)?.reject(error);
    });
    return response as Promise<T>;
  }

  /** The resources that the process has used so far. */
  usage(): Promise<Usage> {
    return this.request('usage');
  }

  /** Closes the IPC channel, after which the process exits. Kills it after ten seconds. */
  async stop(): Promise<void> {
    if (this.#exit !== undefined) return;
    const exited = new Promise<void>((resolve) => this.#process.once('exit', () => resolve()));
    if (this.#process.connected) this.#process.disconnect();
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), EXIT_LIMIT_MS);
    await exited;
    clearTimeout(timer);
  }

  #responseTo(id: number): Promise<unknown> {
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    return pending.promise;
  }
}

/** In the process: the configuration that it was started with. */
export function configuration(): unknown {
  return JSON.parse(process.argv[2] ?? '{}');
}

/**
 * In the process: sends `ready`, and then executes commands. When the IPC channel closes, the process executes the command
 * `end` if it has one, and exits.
 */
export function serveCommands(
  ready: unknown,
  commands: Readonly<Record<string, (value: never) => unknown>> = {},
): void {
  const all: typeof commands = { usage, ...commands };
  process.on('message', ({ id, command, value }: Command) => {
    void (async () => {
      try {
        process.send!({ id, value: await all[command]!(value as never) });
      } catch (error) {
        process.send!({ id, error: String((error as Error).stack ?? error) });
      }
    })();
  });
  process.once('disconnect', () => {
    void (async () => {
      await all['end']?.(undefined as never);
      process.exit(0);
    })();
  });
  process.send!({ id: 0, value: ready });
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1000 };
}
