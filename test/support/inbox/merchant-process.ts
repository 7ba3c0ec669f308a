import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { delivery } from '../webhook/handler-application.js';
import type { InboxData } from './durable-inboxes.js';
import { SECRET } from '../webhook/webhook-application.js';
import type { WorkerOptions } from 'nestjs-payments';

/** A merchant's process on the data of a stage: `merchant.mjs`. */
export class MerchantProcess {
  /** What it reported, a line each. */
  readonly lines: string[] = [];
  /** What Nest logged, and whatever else it wrote. */
  log = '';
  /** Resolves when it has ended. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  #onLine = () => {};
  #ended = false;

  constructor(
    data: InboxData,
    setup: { worker?: WorkerOptions; hooks?: boolean; slowMs?: number } = {},
  ) {
    const given = { ...data.child, webhookSecret: SECRET, ...setup };
    const program = join(import.meta.dirname, 'merchant.mjs');
    this.#child = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(given)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    createInterface(this.#child.stdout!).on('line', (line) => {
      if (/^(ready|ran|ended|refused) /.test(line)) this.lines.push(line);
      else this.log += `${line}\n`;
      this.#onLine();
    });
    this.#child.stderr!.on('data', (text) => {
      this.log += String(text);
      this.#onLine();
    });
    this.gone = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        this.#ended = true;
        this.#onLine();
        resolve({ code, signal });
      });
    });
  }

  /** A process that takes deliveries. */
  static async start(...setup: ConstructorParameters<typeof MerchantProcess>) {
    const merchant = new MerchantProcess(...setup);
    await merchant.until(() => merchant.url !== undefined);
    return merchant;
  }

  get url(): string | undefined {
    return this.lines.find((line) => line.startsWith('ready '))?.slice('ready '.length);
  }

  /** Resolves once the condition holds, checked with each line of output; rejects if the process ends before. */
  async until(condition: () => boolean): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#onLine = () => {
        if (condition()) resolve();
        else if (this.#ended) reject(new Error(`The process is gone: ${this.log}`));
      };
      this.#onLine();
    });
  }

  /** Resolves once it has reported this line. */
  told(line: string): Promise<void> {
    return this.until(() => this.lines.includes(line));
  }

  /** Sends an event whose handler does the named action. Resolves with the status; rejects without a response. */
  async send(id: string, action: string, data: Record<string, unknown> = {}): Promise<number> {
    const request = delivery({ id, data: { do: action, ...data } });
    const answer = await fetch(this.url + request.path, request);
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Ends the waits of handlers. */
  tell(): void {
    this.#child.stdin!.write('\n');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** SIGKILL; resolves when it has ended. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.gone;
  }
}
