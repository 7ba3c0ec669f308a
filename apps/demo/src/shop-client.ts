/** An order, as the API of the shop returns it. */
export interface ShopOrder {
  readonly reference: string;
  readonly amount: number;
  readonly status: string;
  readonly checkoutUrl: string | null;
  readonly amountPaid?: number;
  /** Whether the shop found the payment by asking the payments service. */
  readonly foundByPoll?: boolean;
}

/** A ledger entry, as the API of the shop returns it. */
export interface LedgerEntry {
  readonly transactionId: string;
  readonly reference: string | null;
  readonly amount: number;
  readonly recordedAt: string;
  readonly unmatched?: boolean;
}

/** A client of the API of the shop. */
export class ShopClient {
  constructor(
    private readonly url: string,
    private readonly signal: AbortSignal,
  ) {}

  /** Creates an order and its checkout invoice. */
  createOrder(reference: string, amount: number): Promise<ShopOrder> {
    return this.#call('/api/orders', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ reference, amount }),
    });
  }

  order(reference: string): Promise<ShopOrder> {
    return this.#call(`/api/orders/${reference}`);
  }

  ledger(): Promise<LedgerEntry[]> {
    return this.#call('/api/ledger');
  }

  /** Returns the number of deliveries in the inbox by state: `pending`, `running`, `dead`. */
  async inbox(): Promise<Readonly<Record<string, number>>> {
    const { deliveries } = await this.#call<{ deliveries: { state: string; count: number }[] }>(
      '/api/inbox',
    );
    return Object.fromEntries(deliveries.map(({ state, count }) => [state, count]));
  }

  async #call<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await fetch(this.url + path, { ...init, signal: this.signal });
    if (response.ok) return (await response.json()) as T;
    throw new Error(`${init.method ?? 'GET'} ${path} returned ${response.status}`);
  }
}
