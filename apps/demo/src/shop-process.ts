import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import type { ShopTelemetry } from './telemetry/telemetry-collector.js';

const START_MS = 40_000;
const CLOSE_MS = 10_000;
const LISTENING = /Listening on (http:\S+)/;

export interface ShopProcessOptions {
  /** The main file of the shop. */
  readonly file: string;
  /** The environment variables of the shop. */
  readonly settings: Readonly<Record<string, string>>;
  /** An array to which each line of the log is added. */
  readonly log: string[];
  /** The collector of the shop's telemetry; `null` starts the shop without telemetry. */
  readonly telemetry: ShopTelemetry | null;
}

/** A shop that runs in its own process, as `npm run shop` starts it. */
export class ShopProcess implements AsyncDisposable {
  /** Resolves when the process has exited, with its exit code or the signal that ended it. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #log: string[];
  readonly #killOnExit = () => void this.#child.kill('SIGKILL');
  #url = '';

  private constructor({ file, settings, log, telemetry }: ShopProcessOptions) {
    this.#log = log;
    const preload = telemetry === null ? [] : ['--import', pathToFileURL(telemetry.preload).href];
    this.#child = spawn(process.execPath, [...preload, path.resolve(file)], {
      // The current folder is not used, because it may contain the .env file of a developer.
      cwd: path.dirname(file),
      env: { ...environmentWithoutSettings(), NO_COLOR: '1', PORT: '0', ...settings },
      stdio: ['ignore', 'pipe', 'pipe', ...(telemetry === null ? [] : ['ipc' as const])],
    });
    if (telemetry !== null) this.#child.on('message', telemetry.receive);
    process.once('exit', this.#killOnExit);
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(error.message));
      this.#child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    void this.ended.then(() => process.off('exit', this.#killOnExit));
  }

  /** Starts the shop on a free port. Rejects if the shop exits, or does not listen within 40 s. */
  static async start(options: ShopProcessOptions, signal: AbortSignal): Promise<ShopProcess> {
    const { log } = options;
    const from = log.length;
    const shop = new ShopProcess(options);
    const stop = AbortSignal.any([signal, AbortSignal.timeout(START_MS)]);
    try {
      await shop.#waitUntilListening(stop);
      return shop;
    } catch (error) {
      await shop[Symbol.asyncDispose]();
      throw new Error(`the shop did not start: ${log.slice(from).join('\n')}`, { cause: error });
    }
  }

  /** Address of the shop. */
  get url(): string {
    return this.#url;
  }

  /** Sends SIGKILL, so that the process exits without shutting the shop down. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  /** Sends SIGTERM. Sends SIGKILL if the process has not exited after ten seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM');
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_MS);
    await this.ended;
    clearTimeout(kill);
  }

  async #waitUntilListening(signal: AbortSignal): Promise<void> {
    const listening = new Promise<string>((resolve) => {
      for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
        createInterface(stream).on('line', (line) => {
          this.#log.push(line);
          const [, url] = LISTENING.exec(line) ?? [];
          if (url !== undefined) resolve(url);
        });
      }
    });
    const ended = this.ended.then((reason) => Promise.reject(new Error(reason)));
    const stopped = once(signal, 'abort').then(() => Promise.reject(signal.reason as Error));
    this.#url = await Promise.race([listening, ended, stopped]);
  }
}

/** Returns the environment variables of this process without those that are settings of a shop. */
function environmentWithoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(PAYMENTS_|SHOP_(?!ADAPTER|MISTAKE)|DATABASE_URL$)/.test(name),
    ),
  );
}
