import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Usage } from './command-server.ts';

const END_MS = 10_000;

interface CommandResponse {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A process that the bench starts and sends commands to. It exits when the bench exits, for any reason. */
export class Child {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #ready: unknown;

  private constructor(child: ChildProcess, file: string) {
    this.#process = child;
    child.on('message', ({ id, value, error }: CommandResponse) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) pending?.resolve(value);
      else pending?.reject(new Error(`${file}: ${error}`));
    });
    child.on('exit', (code, signal) => {
      for (const { reject } of this.#pending.values()) {
        reject(new Error(`${file} exited (${signal ?? code}). Its output is above.`));
      }
      this.#pending.clear();
    });
  }

  /**
   * Starts a script of the bench and waits until it is ready. If BENCH_CPU_PROF names a folder, the process writes a
   * CPU profile to it when it exits.
   *
   * @param flags of Node, e.g. `--expose-gc`.
   */
  static async start(
    file: string,
    config: unknown = {},
    flags: readonly string[] = [],
  ): Promise<Child> {
    const profiles = process.env['BENCH_CPU_PROF'];
    const profile = profiles ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [];
    const forked = fork(join(import.meta.dirname, '..', file), [JSON.stringify(config)], {
      execArgv: ['--disable-warning=ExperimentalWarning', ...profile, ...flags],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const child = new Child(forked, file);
    child.#ready = await child.#responseTo(0);
    return child;
  }

  /** The value that the process sent when it was ready. */
  get ready(): unknown {
    return this.#ready;
  }

  /** Sends a command. Resolves with its response. */
  ask<T>(command: string, value?: unknown): Promise<T> {
    const id = (this.#lastId += 1);
    const response = this.#responseTo(id);
    this.#process.send({ id, command, value }, (error) => {
      if (error) this.#pending.get(id)?.reject(error);
    });
    return response as Promise<T>;
  }

  /** The resources that the process has used so far. */
  usage(): Promise<Usage> {
    return this.ask('usage');
  }

  /** Sends the command `end`, and SIGKILL if the process has not exited after ten seconds. */
  async end(): Promise<void> {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null || !child.connected) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.send({ id: -1, command: 'end' });
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
    await exited;
    clearTimeout(timer);
  }

  #responseTo(id: number): Promise<unknown> {
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    return pending.promise;
  }
}
