import { expect } from '@jest/globals';
import type { CheckoutInvoice, NewCompanyPayment, PaymentsEmulator } from 'payments-emulator';
import { get } from './api-client.js';

/** A customer at the checkout page of an invoice, without a browser. */
export class CheckoutCustomer {
  readonly invoice: CheckoutInvoice;

  /** Creates an invoice of 1250 with the reference `order-77`. */
  constructor(
    private readonly emulator: PaymentsEmulator,
    payment: Partial<NewCompanyPayment> = {},
  ) {
    this.invoice = emulator.createCheckoutInvoice({
      amount: 1250,
      externalReference: 'order-77',
      ...payment,
    });
  }

  /** The status of the invoice. */
  get status(): string {
    return this.emulator.transaction(this.invoice.transactionId).status;
  }

  /** Returns the HTML of the page. */
  async page(): Promise<string> {
    return await (await get(this.invoice.checkoutUrl)).text();
  }

  /** Sends a form of the page as a browser does, and returns the HTML of the next page. */
  async send(action: string, fields: Record<string, string> = {}): Promise<string> {
    const response = await fetch(`${this.invoice.checkoutUrl}/${action}`, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { origin: this.emulator.baseUrl, 'sec-fetch-site': 'same-origin' },
    });
    expect(response.status).toBe(200);
    expect(response.redirected).toBe(true);
    return await response.text();
  }

  /** Enters a phone number and returns the code that the page shows. */
  async requestCode(phoneNumber = '+1 555 010 0123'): Promise<string> {
    return codeIn(await this.send('phone', { phoneNumber }));
  }

  /** Enters a phone number and the code, and returns the HTML of the next page. */
  async confirm(): Promise<string> {
    return await this.send('code', { code: await this.requestCode() });
  }
}

/** Returns the one-time code that a page shows. */
export function codeIn(page: string): string {
  const [, code = ''] = /class="digits">(\d{6})</.exec(page) ?? [];
  expect(code).not.toBe('');
  return code;
}
