import { expect } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../time/waiting.js';
import { startProgram } from '../processes/start-program.js';
import type { RunningProcess } from '../processes/running-process.js';

/** The built main file of the shop. */
export const SHOP_PROGRAM = 'apps/shop/dist/main.js';
const PASSWORD = 'correct horse battery';

/** The settings of the shop that depend on the payments service. */
export interface ShopSettings extends Record<string, string> {
  PAYMENTS_BASE_URL: string;
  PAYMENTS_CLIENT_ID: string;
  PAYMENTS_CLIENT_SECRET: string;
  PAYMENTS_WEBHOOK_SECRET: string;
}

/** The settings of a shop that uses the emulator. */
export function settingsFor({ baseUrl, company }: PaymentsEmulator): ShopSettings {
  return {
    PAYMENTS_BASE_URL: baseUrl,
    PAYMENTS_CLIENT_ID: company.clientId,
    PAYMENTS_CLIENT_SECRET: company.clientSecret,
    PAYMENTS_WEBHOOK_SECRET: company.webhookSecret,
  };
}

/** Status and JSON body of a response. */
export interface ShopResponse<T> {
  status: number;
  body: T;
}

/** An order, as the API returns it. */
export interface Order {
  reference: string;
  amount: number;
  status: string;
  checkoutUrl: string | null;
  amountPaid?: number;
}

/** A ledger entry, as the API returns it. */
export interface LedgerEntry {
  transactionId: string;
  reference: string | null;
  amount: number;
  recordedAt: string;
  unmatched?: boolean;
}

/** A shop in a process of its own, on a free port, and a client of its API. */
export class RunningShop implements AsyncDisposable {
  private constructor(
    readonly process: RunningProcess,
    readonly url: string,
    private readonly password: string,
  ) {}

  static async start(settings: Readonly<Record<string, string>>): Promise<RunningShop> {
    const { SHOP_CONSOLE_PASSWORD = PASSWORD } = settings;
    const process = startProgram(SHOP_PROGRAM, {
      PORT: '0',
      SHOP_CONSOLE_PASSWORD,
      ...settings,
    });
    const [, url] = await process.prints(/Listening on (http:\S+)/);
    return new RunningShop(process, url!, SHOP_CONSOLE_PASSWORD);
  }

  get webhookUrl(): string {
    return `${this.url}/webhooks/payments`;
  }

  /** `POST /api/orders` with any body. */
  post<T = Order>(body: unknown): Promise<ShopResponse<T>> {
    return this.#call('/api/orders', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  /** `GET` of a path. */
  get<T>(path: string): Promise<ShopResponse<T>> {
    return this.#call(path);
  }

  async createOrder(reference: string, amount: number): Promise<Order> {
    return (await this.post({ reference, amount })).body;
  }

  async order(reference: string): Promise<Order> {
    return (await this.get<Order>(`/api/orders/${reference}`)).body;
  }

  /** The ledger entries with a reference, or all. */
  async ledger(reference?: string): Promise<LedgerEntry[]> {
    const { body } = await this.get<LedgerEntry[]>('/api/ledger');
    return body.filter((entry) => reference === undefined || entry.reference === reference);
  }

  /** Resolves when the ledger has exactly these amounts for a reference. */
  async recorded(reference: string, amounts: number[]): Promise<void> {
    await eventually(async () => {
      const ledger = await this.ledger(reference);
      expect(ledger.map(({ amount }) => amount)).toEqual(amounts);
    });
  }

  /** How many deliveries are pending, running and dead, by state. */
  async deliveries(): Promise<Record<string, number>> {
    const { body } = await this.get<{ deliveries: { state: string; count: number }[] }>(
      '/api/inbox',
    );
    return Object.fromEntries(body.deliveries.map(({ state, count }) => [state, count]));
  }

  /** Calls `act`, and resolves when the handler has completed `count` more deliveries. */
  async handled(count: number, act: () => unknown): Promise<void> {
    const before = await this.#done();
    await act();
    await eventually(async () => expect(await this.#done()).toBe(before + count));
  }

  /** How many events the console lists as done, up to 200. */
  async #done(): Promise<number> {
    const authorization = `Basic ${btoa(`operator:${this.password}`)}`;
    const { body } = await this.#call<{ events: unknown[] }>(
      '/console/api/events?state=done&limit=200',
      { headers: { authorization } },
    );
    return body.events.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
  }

  async #call<T>(path: string, init: RequestInit = {}): Promise<ShopResponse<T>> {
    const response = await fetch(this.url + path, init);
    return { status: response.status, body: (await response.json()) as T };
  }
}
