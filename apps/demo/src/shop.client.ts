/** An order, as the shop shows it. */
export interface ShownOrder {
  readonly reference: string;
  readonly amount: number;
  readonly status: string;
  readonly checkoutUrl: string | null;
  readonly amountPaid?: number;
}

/** A payment, as the shop shows it in its ledger. */
export interface BookedPayment {
  readonly transactionId: string;
  readonly reference: string | null;
  readonly amount: number;
  readonly bookedAt: string;
  readonly unmatched?: boolean;
}

/** A customer's, and the owner's, way to the shop: its HTTP API. */
export class ShopClient {
  constructor(
    private readonly url: string,
    private readonly signal: AbortSignal,
  ) {}

  place(reference: string, amount: number): Promise<ShownOrder> {
    return this.#call('/orders', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ reference, amount }),
    });
  }

  order(reference: string): Promise<ShownOrder> {
    return this.#call(`/orders/${reference}`);
  }

  ledger(): Promise<BookedPayment[]> {
    return this.#call('/ledger');
  }

  /** How many deliveries are in the inbox, by state: `pending`, `running`, `dead`. */
  async inbox(): Promise<Readonly<Record<string, number>>> {
    const { deliveries } = await this.#call<{ deliveries: { state: string; count: number }[] }>(
      '/inbox',
    );
    return Object.fromEntries(deliveries.map(({ state, count }) => [state, count]));
  }

  async #call<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await fetch(this.url + path, { ...init, signal: this.signal });
    if (response.ok) return (await response.json()) as T;
    throw new Error(`${init.method ?? 'GET'} ${path} was answered ${response.status}`);
  }
}
