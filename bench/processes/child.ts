import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Usage } from './parent.ts';

const END_MS = 10_000;

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A process that the bench started, and can ask things of. It ends with the bench, however that ends. */
export class Child {
  readonly #process: ChildProcess;
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>();
  #last = 0;

  private constructor(child: ChildProcess, file: string) {
    this.#process = child;
    child.on('message', ({ id, value, error }: Answer) => {
      const asked = this.#asked.get(id);
      this.#asked.delete(id);
      if (error === undefined) asked?.resolve(value);
      else asked?.reject(new Error(`${file}: ${error}`));
    });
    child.on('exit', (code, signal) => {
      for (const { reject } of this.#asked.values()) {
        reject(new Error(`${file} ended (${signal ?? code}); what it said is above.`));
      }
      this.#asked.clear();
    });
  }

  /**
   * Starts a script of the bench and waits until it is ready. Where BENCH_CPU_PROF names a folder, a profile of
   * the process lies there when it has ended.
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
    const child = fork(join(import.meta.dirname, '..', file), [JSON.stringify(config)], {
      execArgv: ['--disable-warning=ExperimentalWarning', ...profile, ...flags],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const it = new Child(child, file);
    it.#ready = await it.#answerTo(0);
    return it;
  }

  #ready: unknown;

  /** What it said when it was ready. */
  get ready(): unknown {
    return this.#ready;
  }

  ask<T>(command: string, value?: unknown): Promise<T> {
    const id = (this.#last += 1);
    const answer = this.#answerTo(id);
    this.#process.send({ id, command, value }, (error) => {
      if (error) this.#asked.get(id)?.reject(error);
    });
    return answer as Promise<T>;
  }

  usage(): Promise<Usage> {
    return this.ask('usage');
  }

  /** Has it end, by force where it does not. */
  async end(): Promise<void> {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null || !child.connected) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.send({ id: -1, command: 'end' });
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
    await gone;
    clearTimeout(timer);
  }

  #answerTo(id: number): Promise<unknown> {
    const asked = Promise.withResolvers<unknown>();
    this.#asked.set(id, asked);
    return asked.promise;
  }
}
