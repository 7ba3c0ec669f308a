import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { webhookRequest } from '../webhook/handler-application.js';
import type { InboxData } from './durable-inboxes.js';
import { SECRET } from '../webhook/webhook-application.js';
import type { WorkerOptions } from 'nestjs-payments';

/** The orders of a process that runs `ordering-merchant.mjs`. */
export interface OrdersSetup {
  /** URL of the payments service. */
  readonly baseUrl: string;
  /** The process kills itself as soon as each order has reached the step at which it halts. */
  readonly place: readonly {
    readonly reference: string;
    readonly halt: string;
    /** Whether the test sends a webhook request when the process reports `paid <reference> <transaction>`. */
    readonly webhook: boolean;
  }[];
  /** Whether the orders are placed with `PaymentExpectations.request()`. */
  readonly request?: boolean;
  /** References of orders that earlier processes placed with `request()`. The process places them again until they are requested. */
  readonly again?: readonly string[];
}

/** A process that runs `merchant.mjs`, or `ordering-merchant.mjs` if it has orders, on a durable inbox. */
export class MerchantProcess {
  /** The lines that it reported. */
  readonly lines: string[] = [];
  /** All other output, such as the log of Nest. */
  log = '';
  /** Resolves when the process has ended. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  /** Checks the conditions that are waited for. */
  readonly #conditions = new Set<() => void>();
  #ended = false;

  constructor(
    data: InboxData,
    setup: { worker?: WorkerOptions; hooks?: boolean; slowMs?: number; orders?: OrdersSetup } = {},
  ) {
    const given = { ...data.child, webhookSecret: SECRET, ...setup };
    const program = setup.orders === undefined ? 'merchant.mjs' : 'ordering-merchant.mjs';
    const file = join(import.meta.dirname, program);
    this.#child = spawn(process.execPath, ['--no-warnings', file, JSON.stringify(given)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    createInterface(this.#child.stdout!).on('line', (line) => {
      if (/^(ready|ran|ended|rejected|paid) /.test(line)) this.lines.push(line);
      else this.log += `${line}\n`;
      this.#check();
    });
    this.#child.stderr!.on('data', (text) => {
      this.log += String(text);
      this.#check();
    });
    this.gone = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        this.#ended = true;
        this.#check();
        resolve({ code, signal });
      });
    });
  }

  /** Starts a process, and waits until it accepts webhook requests. */
  static async start(...setup: ConstructorParameters<typeof MerchantProcess>) {
    const merchant = new MerchantProcess(...setup);
    await merchant.until(() => merchant.url !== undefined);
    return merchant;
  }

  get url(): string | undefined {
    return this.lines.find((line) => line.startsWith('ready '))?.slice('ready '.length);
  }

  /** Checks the condition after each line of output, and resolves when it holds. Rejects if the process ends first. */
  async until(condition: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = (): void => {
      if (condition()) resolve();
      else if (this.#ended) reject(new Error(`The process has ended: ${this.log}`));
    };
    this.#conditions.add(check);
    check();
    await promise.finally(() => this.#conditions.delete(check));
  }

  #check(): void {
    for (const check of this.#conditions) check();
  }

  /** Resolves when the process has reported this line. */
  reported(line: string): Promise<void> {
    return this.until(() => this.lines.includes(line));
  }

  /** Sends an event whose handler does the named action. Returns the status; rejects if there is no response. */
  async send(id: string, action: string, data: Record<string, unknown> = {}): Promise<number> {
    const request = webhookRequest({ id, data: { do: action, ...data } });
    const response = await fetch(this.url + request.path, request);
    await response.arrayBuffer();
    return response.status;
  }

  /** Lets handlers continue whose action is `… on continue`. */
  continueHandlers(): void {
    this.#child.stdin!.write('\n');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends SIGKILL, and waits until the process has ended. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.gone;
  }
}
