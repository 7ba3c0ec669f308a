import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { monotonicMs } from './application-protocol.js';
import type {
  ApplicationRequest,
  ApplicationSetup,
  FromApplication,
  ToApplication,
} from './application-protocol.js';

/** The number of characters of a process's log that are kept. */
const LOG_LENGTH = 4000;
const ENDED = 'The application process has ended.';

/** One process of the application, from its start to its end. */
export class ApplicationProcess {
  /** Address for webhook requests; `null` before the process listens and after it has ended. */
  url: string | null = null;
  /** The end of the process's log. */
  log = '';
  /** How the chaos runner ended the process; `null` if the chaos runner has not ended the process. */
  endedBy: 'killed' | 'drained' | null = null;
  /** When the process ended, by the machine's monotonic clock; `null` while it runs. */
  endedAt: number | null = null;
  /** Resolves with `true` once the process listens, or with `false` if it ended before. */
  readonly ready: Promise<boolean>;
  /** Resolves once the process has ended, with its exit code or the signal that ended it. */
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
      const received = message as FromApplication;
      if (received.type === 'ready') {
        this.url = received.url;
        ready.resolve(true);
      } else if (received.type === 'response') {
        this.#requests.get(received.request)?.resolve(received.value);
      } else this.#requests.get(received.request)?.reject(new Error(received.error));
    });
    // Sending a message to a process that has just ended emits an error.
    child.on('error', () => {});
    const ended = Promise.withResolvers<string>();
    this.ended = ended.promise;
    child.on('exit', (code, signal) => {
      this.endedAt = monotonicMs();
      this.url = null;
      ready.resolve(false);
      for (const request of this.#requests.values()) request.reject(new Error(ENDED));
      ended.resolve(signal ?? `exit code ${code}`);
    });
  }

  /** Unique among the processes of a chaos run. */
  get name(): string {
    return path.basename(this.setup.journal, '.journal');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  send(message: ToApplication): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Resolves with the response. Rejects if the process has ended, fails, or does not respond in time. */
  async request<T>(type: ApplicationRequest, limitMs = 5000): Promise<T> {
    const request = this.#requests.size + 1;
    const response = Promise.withResolvers<unknown>();
    this.#requests.set(request, response);
    const timer = setTimeout(
      () => response.reject(new Error('The application does not respond.')),
      limitMs,
    );
    this.send({ type, request });
    if (!this.#child.connected) response.reject(new Error(ENDED));
    try {
      return (await response.promise) as T;
    } finally {
      clearTimeout(timer);
    }
  }
}
