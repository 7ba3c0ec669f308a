import { join } from 'node:path';
import type { WorkerOptions } from 'nestjs-payments';
import { RunningProcess } from '../processes/running-process.ts';
import { webhookRequest } from '../webhook/handler-application.js';
import { SECRET } from '../webhook/webhook-application.js';
import type { InboxData } from './durable-inboxes.js';

/** A process that runs `merchant.mjs` on a durable inbox. */
export class MerchantProcess extends RunningProcess {
  constructor(
    data: InboxData,
    setup: { worker?: WorkerOptions; hooks?: boolean; slowMs?: number } = {},
  ) {
    const given = { ...data.child, webhookSecret: SECRET, ...setup };
    const file = join(import.meta.dirname, 'merchant.mjs');
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
    return this.out.filter((line) => /^(ready|ran|ended) /.test(line));
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
