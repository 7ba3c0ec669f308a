import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { machineMs } from './application-protocol.js';
import type { ApplicationSetup, FromApplication, ToApplication } from './application-protocol.js';

/** How many characters of a process's log are kept. */
const LOG_LENGTH = 4000;

/** One process of the application, from its start to its end. */
export class ApplicationProcess {
  /** Where it takes deliveries; `null` before it does, and once it has ended. */
  url: string | null = null;
  /** Last part of what it logged. */
  log = '';
  /** Why the run ended it; `null` if the run did not. */
  endedBy: 'killed' | 'drained' | null = null;
  /** By the machine's monotonic clock; `null` while it runs. */
  endedAt: number | null = null;
  /** Resolves once it takes deliveries (`true`) or has ended without (`false`). */
  readonly ready: Promise<boolean>;
  /** Resolves once it has ended, with its exit code or the signal that ended it. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #requests = new Map<number, PromiseWithResolvers<unknown>>();

  constructor(
    file: string,
    readonly setup: ApplicationSetup,
  ) {
    const child = spawn(process.execPath, ['--no-warnings', file, JSON.stringify(setup)], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    const ready = Promise.withResolvers<boolean>();
    this.ready = ready.promise;
    for (const output of [child.stdout!, child.stderr!]) {
      output.on('data', (text) => {
        this.log = `${this.log}${String(text)}`.slice(-LOG_LENGTH);
      });
    }
    child.on('message', (message) => {
      const said = message as FromApplication;
      if (said.type === 'ready') {
        this.url = said.url;
        ready.resolve(true);
      } else if (said.type === 'answer') this.#requests.get(said.request)?.resolve(said.value);
      else this.#requests.get(said.request)?.reject(new Error(said.error));
    });
    // A message to a process that has just ended.
    child.on('error', () => {});
    const ended = Promise.withResolvers<string>();
    this.ended = ended.promise;
    child.on('exit', (code, signal) => {
      this.endedAt = machineMs();
      this.url = null;
      ready.resolve(false);
      for (const request of this.#requests.values()) request.reject(new Error('It has ended.'));
      ended.resolve(signal ?? `exit code ${code}`);
    });
  }

  /** Different for each process of a run. */
  get name(): string {
    return path.basename(this.setup.journal, '.journal');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  tell(message: ToApplication): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Rejects if it has ended, cannot answer, or does not within 5 s. */
  async ask<T>(type: 'unfinished' | 'report'): Promise<T> {
    const request = this.#requests.size + 1;
    const answer = Promise.withResolvers<unknown>();
    this.#requests.set(request, answer);
    const timer = setTimeout(() => answer.reject(new Error('It does not answer.')), 5000);
    this.tell({ type, request });
    if (!this.#child.connected) answer.reject(new Error('It has ended.'));
    try {
      return (await answer.promise) as T;
    } finally {
      clearTimeout(timer);
    }
  }
}
