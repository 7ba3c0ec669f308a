import { expect } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { eventually } from './eventually.js';
import { ShopProcess } from './shop.process.js';

export const SHOP = 'apps/shop/dist/main.js';
const PASSWORD = 'correct horse battery';

/** What the shop needs to be told of a service. */
export interface ShopSettings extends Record<string, string> {
  PAYMENTS_BASE_URL: string;
  PAYMENTS_CLIENT_ID: string;
  PAYMENTS_CLIENT_SECRET: string;
  PAYMENTS_WEBHOOK_SECRET: string;
}

export function settingsFor({ baseUrl, company }: PaymentsEmulator): ShopSettings {
  return {
    PAYMENTS_BASE_URL: baseUrl,
    PAYMENTS_CLIENT_ID: company.clientId,
    PAYMENTS_CLIENT_SECRET: company.clientSecret,
    PAYMENTS_WEBHOOK_SECRET: company.webhookSecret,
  };
}

export interface Answer<T> {
  status: number;
  body: T;
}

export interface Order {
  reference: string;
  amount: number;
  status: string;
  checkoutUrl: string | null;
  amountPaid?: number;
}

export interface LedgerEntry {
  transactionId: string;
  reference: string | null;
  amount: number;
  bookedAt: string;
  unmatched?: boolean;
}

/** The shop as a process on a free port, and its HTTP API. */
export class Shop implements AsyncDisposable {
  private constructor(
    readonly process: ShopProcess,
    readonly url: string,
    private readonly password: string,
  ) {}

  static async start(settings: Readonly<Record<string, string>>): Promise<Shop> {
    const { SHOP_CONSOLE_PASSWORD = PASSWORD } = settings;
    const process = new ShopProcess(SHOP, { PORT: '0', SHOP_CONSOLE_PASSWORD, ...settings });
    const [, url] = await process.line(/Listening on (http:\S+)/);
    return new Shop(process, url!, SHOP_CONSOLE_PASSWORD);
  }

  get webhookUrl(): string {
    return `${this.url}/webhooks/payments`;
  }

  /** `POST /orders`, with any body. */
  post<T = Order>(body: unknown): Promise<Answer<T>> {
    return this.#call('/orders', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  get<T>(path: string): Promise<Answer<T>> {
    return this.#call(path);
  }

  async place(reference: string, amount: number): Promise<Order> {
    return (await this.post({ reference, amount })).body;
  }

  async order(reference: string): Promise<Order> {
    return (await this.get<Order>(`/orders/${reference}`)).body;
  }

  /** The entries of a reference, or all. */
  async ledger(reference?: string): Promise<LedgerEntry[]> {
    const { body } = await this.get<LedgerEntry[]>('/ledger');
    return body.filter((entry) => reference === undefined || entry.reference === reference);
  }

  /** Resolves once the amounts booked for a reference are these. */
  async booked(reference: string, amounts: number[]): Promise<void> {
    await eventually(async () => {
      const ledger = await this.ledger(reference);
      expect(ledger.map(({ amount }) => amount)).toEqual(amounts);
    });
  }

  /** How many deliveries are pending, running and dead. */
  async deliveries(): Promise<Record<string, number>> {
    const { body } = await this.get<{ deliveries: { state: string; count: number }[] }>('/inbox');
    return Object.fromEntries(body.deliveries.map(({ state, count }) => [state, count]));
  }

  /** Does something, and resolves once the handler has done so many more deliveries. */
  async handled(more: number, act: () => unknown): Promise<void> {
    const before = await this.#done();
    await act();
    await eventually(async () => expect(await this.#done()).toBe(before + more));
  }

  /** How many events are done, up to 200: as the console lists them. */
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

  async #call<T>(path: string, init: RequestInit = {}): Promise<Answer<T>> {
    const response = await fetch(this.url + path, init);
    return { status: response.status, body: (await response.json()) as T };
  }
}
