import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { environment } from '../support/processes/command.ts';

/** Folder and environment of a process, and the time limit of {@link RunningProcess.prints}. */
export interface RunningProcessOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Milliseconds. Default: one minute. */
  readonly timeoutMs?: number;
}

/** A process that runs until it is stopped, such as an application or an emulator, and its children. */
export class RunningProcess implements AsyncDisposable {
  #output = '';
  #exited = false;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #command: string;
  readonly #timeoutMs: number;
  readonly #waiting = new Set<() => void>();
  readonly #killAtExit = (): void => this.#signal('SIGKILL');

  constructor(program: string, args: readonly string[], options: RunningProcessOptions) {
    const { cwd, env = environment(), timeoutMs = 60_000 } = options;
    this.#command = [program, ...args].join(' ');
    this.#timeoutMs = timeoutMs;
    // A separate process group, so that a signal also stops the child processes of a shell or npm.
    this.#child = spawn(program, args, {
      cwd,
      env: { ...env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
        this.#notify();
      });
    }
    this.#closed = once(this.#child, 'close').finally(() => {
      this.#exited = true;
      this.#notify();
    });
    this.#closed.catch((error: unknown) => (this.#output += String(error)));
    process.once('exit', this.#killAtExit);
  }

  /** The output so far, stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /**
   * Waits until the output matches.
   *
   * @throws with the output if the process exits first or the time limit passes
   */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    const end = performance.now() + this.#timeoutMs;
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      const leftMs = end - performance.now();
      if (this.#exited || leftMs <= 0) {
        const reason = this.#exited ? 'exited' : `ran for ${this.#timeoutMs} ms`;
        throw new Error(
          `${this.#command} ${reason} without printing ${String(pattern)}:\n${this.#output}`,
        );
      }
      await this.#change(leftMs);
    }
  }

  /** Stops the process with SIGINT, as Ctrl+C in a terminal does, and kills it after ten seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off('exit', this.#killAtExit);
    this.#signal('SIGINT');
    const killTimer = setTimeout(() => this.#signal('SIGKILL'), 10_000);
    await this.#closed.catch(() => {});
    clearTimeout(killTimer);
  }

  #change(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, withinMs);
      this.#waiting.add(done);
    });
  }

  #notify(): void {
    for (const done of this.#waiting) done();
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The process group has exited.
    }
  }
}
