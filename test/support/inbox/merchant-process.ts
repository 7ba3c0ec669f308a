import { join } from 'node:path';
import type { WorkerOptions } from 'nestjs-payments';
import { RunningProcess } from '../processes/running-process.ts';
import { webhookRequest } from '../webhook/handler-application.js';
import { SECRET } from '../webhook/webhook-application.js';
import type { InboxData } from './durable-inboxes.js';

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
export class MerchantProcess extends RunningProcess {
  constructor(
    data: InboxData,
    setup: { worker?: WorkerOptions; hooks?: boolean; slowMs?: number; orders?: OrdersSetup } = {},
  ) {
    const given = { ...data.child, webhookSecret: SECRET, ...setup };
    const program = setup.orders === undefined ? 'merchant.mjs' : 'ordering-merchant.mjs';
    const file = join(import.meta.dirname, program);
    super(process.execPath, ['--no-warnings', file, JSON.stringify(given)], { input: true });
  }

  /** Starts a process, and waits until it accepts webhook requests. */
  static async start(...setup: ConstructorParameters<typeof MerchantProcess>) {
    const merchant = new MerchantProcess(...setup);
    await merchant.prints(/^ready /);
    return merchant;
  }

  /** The lines that it reported. The rest of the output is the log of Nest. */
  get lines(): string[] {
    return this.out.filter((line) => /^(ready|ran|ended|rejected|paid) /.test(line));
  }

  get url(): string | undefined {
    return this.lines.find((line) => line.startsWith('ready '))?.slice('ready '.length);
  }

  /** Resolves when the process has reported this line. */
  async reported(line: string): Promise<void> {
    await this.until(() => this.lines.includes(line));
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
    this.write('\n');
  }
}
