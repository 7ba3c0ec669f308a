import { PaymentsSetup } from 'nestjs-payments';
import type {
  Company,
  PaymentsModuleOptions,
  SetupCheck,
  SetupCheckOptions,
} from 'nestjs-payments';
import { PaymentsEmulator } from 'payments-emulator';
import type { PaymentsEmulatorOptions } from 'payments-emulator';
import { Orders, WebhookApplication } from '../webhook/webhook-application.js';
import type { Setup } from '../webhook/webhook-application.js';

/** The credentials of the emulator's companies, as options of the module. */
export function optionsOf(emulator: PaymentsEmulator): PaymentsModuleOptions & {
  readonly companies?: readonly Company[];
} {
  const companies = emulator
    .companies()
    .map(({ companyId: id, clientId, clientSecret, webhookSecret }) => ({
      id,
      clientId,
      clientSecret,
      webhookSecret,
    }));
  const [{ id: _, ...only }, ...others] = companies as [(typeof companies)[0]];
  return { baseUrl: emulator.baseUrl, ...(others.length > 0 ? { companies } : only) };
}

/** A real application and an emulator that sends it webhook requests. */
export class CheckedApplication implements AsyncDisposable {
  private constructor(
    readonly emulator: PaymentsEmulator,
    readonly app: WebhookApplication,
  ) {}

  /** @param setup how the application differs from a correct one that handles `transaction.completed` */
  static async start(
    setup: (emulator: PaymentsEmulator) => Setup = () => ({}),
    options: PaymentsEmulatorOptions = {},
  ): Promise<CheckedApplication> {
    const emulator = await PaymentsEmulator.start(options);
    try {
      const { payments, ...others } = setup(emulator);
      const app = await WebhookApplication.start({
        providers: [Orders],
        payments: { ...optionsOf(emulator), ...payments },
        ...others,
      });
      const checked = new CheckedApplication(emulator, app);
      checked.sendTo(app.url);
      return checked;
    } catch (error) {
      await emulator.close();
      throw error;
    }
  }

  /** Sends the webhook requests to this address, which may be that of a proxy. */
  sendTo(url: string): void {
    const companies = this.emulator.companies();
    for (const { companyId } of companies) {
      const path = `/webhooks/payments${companies.length > 1 ? `/${companyId}` : ''}`;
      this.emulator.setWebhook({ companyId, url: `${url}${path}` });
    }
  }

  async check(options?: SetupCheckOptions): Promise<SetupCheck[]> {
    const lines: SetupCheck[] = [];
    for await (const line of this.app.app.get(PaymentsSetup).check(options)) lines.push(line);
    return lines;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
    await this.emulator.close();
  }
}
