import { randomBytes } from 'node:crypto';
import { PaymentsEmulator } from 'payments-emulator';
import type { DeliveryAttempt } from 'payments-emulator';
import { AdjustableClock } from './adjustable-clock.js';
import type { SceneReport } from './scene-report.js';
import { ServiceClient } from './service-client.js';
import { ShopClient } from './shop-client.js';
import type { ShopOrder } from './shop-client.js';
import { ShopFleet } from './shop-fleet.js';
import { TelemetryCollector } from './telemetry/telemetry-collector.js';
import type { TemporaryDatabase } from './temporary-database.js';

/** The webhook secret before and after the rotation. */
const OLD_SECRET = 'whsec_of_yesterday';
const NEW_SECRET = 'whsec_of_today';

/**
 * The lease of a shop's inbox, in milliseconds. The lease is shorter than the shop's default of ten seconds, so that
 * the recovery after SIGKILL is fast.
 */
const LEASE_MS = '1500';

/**
 * Time between two polls of an expected payment, in milliseconds. This time is much shorter than the default of the
 * payments module.
 */
export const POLL_INTERVAL_MS = 3000;

/** The poll schedule of an order: every three seconds for two minutes, then once a minute for an hour. */
const POLL_SCHEDULE_MS = Array.from({ length: 100 }, (_, index) =>
  index < 40 ? (index + 1) * POLL_INTERVAL_MS : 120_000 + (index - 39) * 60_000,
);

/** User of the console of each shop. */
const OPERATOR = 'operator';

/** A part of the demo. */
export interface Scene {
  readonly title: string;
  /** Plays the scene and checks its results. Before the method resolves, it switches off all faults. */
  play(environment: DemoEnvironment): Promise<void>;
}

export interface EnvironmentOptions {
  /** Seed of ids and faults. */
  readonly seed: string;
  /** The main file of the shop. */
  readonly shop: string;
  /** Database of the shop. If it is a PostgreSQL database, the demo starts three shops behind one address. */
  readonly database: TemporaryDatabase;
  /** Whether to run OpenTelemetry in the shops, and to start at least two shops. Default `false`. */
  readonly telemetry?: boolean;
}

/** The emulator and the shops, on free ports, and the clients that scenes use. */
export class DemoEnvironment implements AsyncDisposable {
  readonly newSecret = NEW_SECRET;
  /** The delivery attempts that have ended, in the order in which they ended. */
  readonly deliveries: DeliveryAttempt[];
  readonly customer: ShopClient;
  readonly service: ServiceClient;

  private constructor(
    readonly emulator: PaymentsEmulator,
    readonly clock: AdjustableClock,
    readonly shops: ShopFleet,
    readonly report: SceneReport,
    deliveries: DeliveryAttempt[],
    private readonly password: string,
    /** A signal that ends the demo. */
    readonly signal: AbortSignal,
  ) {
    this.deliveries = deliveries;
    this.customer = new ShopClient(shops.url, signal);
    this.service = new ServiceClient(emulator.baseUrl, emulator.company, signal);
  }

  /** Starts the emulator and the shops. If a shop does not start, the emulator is closed. */
  static async start(
    options: EnvironmentOptions,
    report: SceneReport,
    signal: AbortSignal,
    onUnexpectedExit: (reason: string) => void,
  ): Promise<DemoEnvironment> {
    const clock = new AdjustableClock();
    const deliveries: DeliveryAttempt[] = [];
    const password = randomBytes(12).toString('base64url');
    const emulator = await PaymentsEmulator.start({
      seed: options.seed,
      webhookSecret: OLD_SECRET,
      clock,
      // Shorter than the 30 s of the real service, so that the demo fails soon if a shop does not respond.
      deliveryTimeout: 10_000,
      onDelivery: (delivery) => void deliveries.push(delivery),
    });
    try {
      const shops = await ShopFleet.start({
        file: options.shop,
        settings: { ...settingsOf(emulator, password), ...options.database.settings },
        count: shopCount(options),
        telemetry: options.telemetry === true ? new TelemetryCollector() : null,
        signal,
        onUnexpectedExit,
      });
      emulator.setWebhook({ url: `${shops.url}/webhooks/payments` });
      return new DemoEnvironment(emulator, clock, shops, report, deliveries, password, signal);
    } catch (error) {
      await emulator.close();
      throw error;
    }
  }

  /** Opens the checkout page of an order and pays as its customer. Resolves with the id of the transaction. */
  readonly pay = async ({ reference, checkoutUrl }: ShopOrder): Promise<string> => {
    if (checkoutUrl === null) throw new Error(`order ${reference} has no checkout page`);
    const { signal } = this;
    const page = await fetch(checkoutUrl, { signal });
    const id = checkoutUrl.split('/').at(-1) ?? '';
    const payment = await fetch(`${this.emulator.baseUrl}/emulator/transactions/${id}/complete`, {
      method: 'POST',
      signal,
    });
    if (page.ok && payment.ok) return id;
    throw new Error(
      `the checkout page returned ${page.status}, and the payment returned ${payment.status}`,
    );
  };

  /** Waits until all deliveries have ended. Resolves with the last delivery attempt of a transaction. */
  readonly lastDelivery = async (transactionId: string): Promise<DeliveryAttempt | undefined> => {
    await this.emulator.idle();
    return this.emulator.deliveries({ transactionId }).at(-1);
  };

  /** The addresses of the pages, and the user name and the password for the console. */
  get addresses() {
    return {
      shop: `${this.shops.url}/`,
      emulator: `${this.emulator.baseUrl}/emulator/`,
      console: `${this.shops.url}/console`,
      user: OPERATOR,
      password: this.password,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shops[Symbol.asyncDispose]();
    await this.emulator.close();
  }
}

/**
 * Returns the number of shops. With telemetry, there are at least two shops, so that the trace of a payment has spans
 * of several processes.
 */
function shopCount({ database, telemetry }: EnvironmentOptions): number {
  if (database.server !== null) return 3;
  return telemetry === true ? 2 : 1;
}

/** Returns the settings of a shop, which accepts the new and the old webhook secret. */
function settingsOf(
  { baseUrl, company }: PaymentsEmulator,
  password: string,
): Record<string, string> {
  return {
    PAYMENTS_BASE_URL: baseUrl,
    PAYMENTS_CLIENT_ID: company.clientId,
    PAYMENTS_CLIENT_SECRET: company.clientSecret,
    PAYMENTS_WEBHOOK_SECRET: NEW_SECRET,
    PAYMENTS_WEBHOOK_SECRET_PREVIOUS: OLD_SECRET,
    SHOP_LEASE_MS: LEASE_MS,
    SHOP_POLL_SCHEDULE_MS: POLL_SCHEDULE_MS.join(),
    SHOP_CONSOLE_PASSWORD: password,
  };
}
