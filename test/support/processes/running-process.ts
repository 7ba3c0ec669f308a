import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { environment } from './run-command.ts';

const LIMIT_MS = 300_000;

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Folder and environment of a process, and what else it needs. */
export interface RunningProcessOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Whether the process gets a standard input that stays open, for {@link RunningProcess.write}. */
  readonly input?: boolean;
  /** Whether {@link RunningProcess.signal} also reaches the child processes, such as those of npm. */
  readonly group?: boolean;
}

/** A program in a process of its own, and its output. It is killed when it is disposed of, and when this process exits. */
export class RunningProcess implements AsyncDisposable {
  stdout = '';
  stderr = '';
  /** Resolves when the process has ended and its output is complete. */
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #command: string;
  readonly #options: RunningProcessOptions;
  readonly #conditions = new Set<() => void>();
  #end: string | undefined;

  constructor(program: string, args: readonly string[], options: RunningProcessOptions = {}) {
    const { cwd, env = environment(), input = false, group = false } = options;
    this.#command = [program, ...args].join(' ');
    this.#options = options;
    this.#child = spawn(program, args, {
      ...(cwd === undefined ? {} : { cwd }),
      env: { NO_COLOR: '1', ...env },
      stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      detached: group,
    });
    for (const stream of ['stdout', 'stderr'] as const) {
      this.#child[stream]!.setEncoding('utf8').on('data', (text: string) => {
        this[stream] += text;
        this.#check();
      });
    }
    const killAtExit = (): void => this.signal('SIGKILL');
    process.once('exit', killAtExit);
    this.ended = new Promise((resolve) => {
      const end = (ending: Ending, reason: string): void => {
        process.off('exit', killAtExit);
        this.#end = reason;
        this.#check();
        resolve(ending);
      };
      this.#child.once('error', (error) => end({ code: null, signal: null }, error.message));
      this.#child.once('close', (code, signal) =>
        end({ code, signal }, `ended with ${signal ?? code}`),
      );
    });
  }

  /** The complete lines of stdout. */
  get out(): string[] {
    return linesOf(this.#complete('stdout'));
  }

  /** The complete lines of stderr. */
  get err(): string[] {
    return linesOf(this.#complete('stderr'));
  }

  /** Everything that the process printed: stdout, then stderr. */
  get output(): string {
    return this.stdout + this.stderr;
  }

  /**
   * Calls `find` after each output, and resolves with its first result that is neither `false`, `null` nor `undefined`.
   *
   * @throws with the output if the process ends first, or after five minutes
   */
  async until<T>(find: () => T | false | null | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fail = (reason: string): void =>
      reject(new Error(`${this.#command} ${reason}:\n${this.output}`));
    const check = (): void => {
      const found = find();
      if (found !== false && found !== null && found !== undefined) resolve(found);
      else if (this.#end !== undefined) fail(this.#end);
    };
    const timer = setTimeout(() => fail(`ran for ${LIMIT_MS} ms`), LIMIT_MS);
    this.#conditions.add(check);
    check();
    return promise.finally(() => {
      clearTimeout(timer);
      this.#conditions.delete(check);
    });
  }

  /** Like {@link until}, for a pattern that matches complete lines of stdout or stderr. `^` and `$` match at each line. */
  prints(pattern: RegExp): Promise<RegExpExecArray> {
    const lines = new RegExp(pattern, `${pattern.flags.replace('m', '')}m`);
    return this.until(
      () => lines.exec(this.#complete('stdout')) ?? lines.exec(this.#complete('stderr')),
    );
  }

  /** Writes to the standard input. */
  write(text: string): void {
    this.#child.stdin!.write(text);
  }

  /** Writes to the standard input, and closes it. */
  end(bytes: Uint8Array = Buffer.alloc(0)): void {
    this.#child.stdin!.end(bytes);
  }

  /** Closes the pipe that the process prints to, as `head` does. */
  closeOutput(): void {
    this.#child.stdout!.destroy();
  }

  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#end !== undefined) return;
    try {
      process.kill(this.#options.group === true ? -pid : pid, signal);
    } catch {
      // The process has exited, and its output is not complete yet.
    }
  }

  /** Sends a signal, SIGKILL by default. Resolves when the process has ended. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ending> {
    this.signal(signal);
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #check(): void {
    for (const check of this.#conditions) check();
  }

  /** While the process runs, its last line may be incomplete. */
  #complete(stream: 'stdout' | 'stderr'): string {
    const text = this[stream];
    return this.#end === undefined ? text.slice(0, text.lastIndexOf('\n') + 1) : text;
  }
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
