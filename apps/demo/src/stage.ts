import { randomBytes } from 'node:crypto';
import { PaymentsEmulator } from 'payments-emulator';
import type { DeliveryRecord } from 'payments-emulator';
import type { Place } from './place.js';
import type { Report } from './report.js';
import { ServiceClient } from './service.client.js';
import { ShiftedClock } from './shifted.clock.js';
import { ShopClient } from './shop.client.js';
import type { ShownOrder } from './shop.client.js';
import { ShopFleet } from './shop.fleet.js';

/** The secret deliveries are signed with in the morning, and the one that follows it in the day. */
const OLD_SECRET = 'whsec_of_yesterday';
const NEW_SECRET = 'whsec_of_today';

/** Soon enough for an audience; a shop has ten seconds by default. */
const LEASE_MS = '1500';

/** Who may use the console. */
const OPERATOR = 'operator';

/** What a stage is set with. */
export interface StageOptions {
  /** Fixes ids and faults, so that a day repeats. */
  readonly seed: string;
  /** The shop's main file. */
  readonly shop: string;
  /** Where it books. On PostgreSQL there are three of it, behind one address. */
  readonly place: Place;
}

/** The emulator and the shop, or shops, on free ports, and everything a scene is played with. */
export class Stage implements AsyncDisposable {
  readonly newSecret = NEW_SECRET;
  /** Delivery attempts that have ended, in the order they did. */
  readonly deliveries: DeliveryRecord[];
  readonly customer: ShopClient;
  readonly service: ServiceClient;

  private constructor(
    readonly emulator: PaymentsEmulator,
    readonly clock: ShiftedClock,
    readonly shops: ShopFleet,
    readonly report: Report,
    deliveries: DeliveryRecord[],
    private readonly password: string,
    private readonly signal: AbortSignal,
  ) {
    this.deliveries = deliveries;
    this.customer = new ShopClient(shops.url, signal);
    this.service = new ServiceClient(emulator.baseUrl, emulator.company, signal);
  }

  /** Starts both. Where a shop does not start, the emulator is closed again. */
  static async set(
    options: StageOptions,
    report: Report,
    signal: AbortSignal,
    onFall: (how: string) => void,
  ): Promise<Stage> {
    const clock = new ShiftedClock();
    const deliveries: DeliveryRecord[] = [];
    const password = randomBytes(12).toString('base64url');
    const emulator = await PaymentsEmulator.start({
      seed: options.seed,
      webhookSecret: OLD_SECRET,
      clock,
      // A shop that hangs is a failure, and not to be waited for as long as the service would.
      deliveryTimeout: 10_000,
      onDelivery: (delivery) => void deliveries.push(delivery),
    });
    try {
      const shops = await ShopFleet.start({
        file: options.shop,
        settings: { ...settingsOf(emulator, password), ...options.place.settings },
        count: options.place.server === null ? 1 : 3,
        signal,
        onFall,
      });
      emulator.setWebhook({ url: `${shops.url}/webhooks/payments` });
      return new Stage(emulator, clock, shops, report, deliveries, password, signal);
    } catch (error) {
      await emulator.close();
      throw error;
    }
  }

  /** Opens an order's checkout page and pays there, as its customer. Resolves with the transaction's id. */
  readonly pay = async ({ reference, checkoutUrl }: ShownOrder): Promise<string> => {
    if (checkoutUrl === null) throw new Error(`order ${reference} has no checkout to be paid at`);
    const { signal } = this;
    const page = await fetch(checkoutUrl, { signal });
    const id = checkoutUrl.split('/').at(-1) ?? '';
    const payment = await fetch(`${this.emulator.baseUrl}/emulator/transactions/${id}/complete`, {
      method: 'POST',
      signal,
    });
    if (page.ok && payment.ok) return id;
    throw new Error(`the checkout answered ${page.status}, the payment ${payment.status}`);
  };

  /** The last attempt to deliver a transaction's event, once there are none under way. */
  readonly lastDelivery = async (transactionId: string): Promise<DeliveryRecord | undefined> => {
    await this.emulator.idle();
    return this.emulator.deliveries({ transactionId }).at(-1);
  };

  /** Where there is something to look at. */
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

/** The shop expects the new secret already, and takes the old one as long as the service uses it. */
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
    SHOP_CONSOLE_USER: OPERATOR,
    SHOP_CONSOLE_PASSWORD: password,
  };
}
