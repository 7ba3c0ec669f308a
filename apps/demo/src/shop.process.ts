import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

const START_MS = 40_000;
const CLOSE_MS = 10_000;
const LISTENING = /Listening on (http:\S+)/;

/** The shop in a process of its own, as `npm run shop` starts it. */
export class ShopProcess implements AsyncDisposable {
  /** Settles when the process has ended, with how. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #killOnExit = () => void this.#child.kill('SIGKILL');
  #url = '';

  private constructor(
    file: string,
    settings: Readonly<Record<string, string>>,
    /** Where its log goes, line by line. */
    private readonly log: string[],
  ) {
    this.#child = spawn(process.execPath, [path.resolve(file)], {
      // Away from a developer's .env.
      cwd: path.dirname(file),
      env: { ...foreignVariables(), NO_COLOR: '1', PORT: '0', ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    process.once('exit', this.#killOnExit);
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(error.message));
      this.#child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    void this.ended.then(() => process.off('exit', this.#killOnExit));
  }

  /** Starts it on a free port; what it logs is added to `log`. Rejects where it ends, or does not listen in time. */
  static async start(
    file: string,
    settings: Readonly<Record<string, string>>,
    signal: AbortSignal,
    log: string[],
  ): Promise<ShopProcess> {
    const from = log.length;
    const shop = new ShopProcess(file, settings, log);
    const stop = AbortSignal.any([signal, AbortSignal.timeout(START_MS)]);
    try {
      await shop.#listening(stop);
      return shop;
    } catch (error) {
      await shop[Symbol.asyncDispose]();
      throw new Error(`the shop did not start: ${log.slice(from).join('\n')}`, { cause: error });
    }
  }

  /** Where it listens. */
  get url(): string {
    return this.#url;
  }

  /** Ends it at once, wherever it is: nothing is drained and nothing closed. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  /** Asks it to close, as an operator would; a shop that does not is killed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM');
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_MS);
    await this.ended;
    clearTimeout(kill);
  }

  async #listening(signal: AbortSignal): Promise<void> {
    const listening = new Promise<string>((resolve) => {
      for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
        createInterface(stream).on('line', (line) => {
          this.log.push(line);
          const [, url] = LISTENING.exec(line) ?? [];
          if (url !== undefined) resolve(url);
        });
      }
    });
    const ended = this.ended.then((how) => Promise.reject(new Error(how)));
    const stopped = once(signal, 'abort').then(() => Promise.reject(signal.reason as Error));
    this.#url = await Promise.race([listening, ended, stopped]);
  }
}

/** The environment without what would set up another shop. */
function foreignVariables(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(PAYMENTS_|SHOP_(?!ADAPTER|MISTAKE)|DATABASE_URL$)/.test(name),
    ),
  );
}
