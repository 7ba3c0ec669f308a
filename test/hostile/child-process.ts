import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';

/** The response to a request to a {@link Child}. */
interface ChildResponse {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** Milliseconds that a child process has to exit after its IPC channel is closed. */
const EXIT_LIMIT_MS = 10_000;

/** A process of the suite that executes requests over IPC. Keeps the output of the process. */
export class Child {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #killAtExit = (): void => void this.#process.kill('SIGKILL');
  #last = 0;
  #output = '';
  #exit: string | undefined;

  private constructor(child: ChildProcess, file: string) {
    this.#process = child;
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    }
    child.on('message', ({ id, value, error }: ChildResponse) => {
      const request = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) request?.resolve(value);
      else request?.reject(new Error(`${file}: ${error}`));
    });
    child.once('exit', (code, signal) => {
      this.#exit = `${file} exited (${signal ?? code}):\n${this.#output.slice(-2000)}`;
      for (const { reject } of this.#waiting.values()) reject(new Error(this.#exit));
      this.#waiting.clear();
      process.off('exit', this.#killAtExit);
    });
    process.once('exit', this.#killAtExit);
  }

  /** Starts a file of this folder with the Node that runs the suite. */
  static start(file: string, nodeFlags: readonly string[] = []): Child {
    const child = fork(join(import.meta.dirname, file), [], {
      execArgv: ['--disable-warning=ExperimentalWarning', ...nodeFlags],
      env: { ...process.env, NO_COLOR: '1', NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    return new Child(child, file);
  }

  /** The output of the process so far, stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /** Signal or exit code of the process and the end of its output; `undefined` while it runs. */
  get exit(): string | undefined {
    return this.#exit;
  }

  /**
   * Sends a request and resolves with its result.
   *
   * @throws if the request fails or the process ends first
   */
  request<T>(command: string, value?: unknown): Promise<T> {
    if (this.#exit !== undefined) return Promise.reject(new Error(this.#exit));
    const id = (this.#last += 1);
    const result = Promise.withResolvers<unknown>();
    this.#waiting.set(id, result);
    this.#process.send({ id, command, value });
    return result.promise as Promise<T>;
  }

  /** Closes the IPC channel, which makes the process exit. Kills it after ten seconds. */
  async stop(): Promise<void> {
    if (this.#exit !== undefined) return;
    const gone = new Promise<void>((resolve) => this.#process.once('exit', () => resolve()));
    this.#process.disconnect();
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), EXIT_LIMIT_MS);
    await gone;
    clearTimeout(timer);
  }
}

/** Executes the requests of the parent process until the IPC channel closes. */
export function serve(commands: Readonly<Record<string, (value: never) => unknown>>): void {
  process.on('message', ({ id, command, value }: { id: number; command: string; value: never }) => {
    void (async () => {
      try {
        process.send!({ id, value: await commands[command]!(value) });
      } catch (error) {
        process.send!({ id, error: String((error as Error).stack ?? error) });
      }
    })();
  });
  process.once('disconnect', () => process.exit(0));
}
