import { describe, expect, it } from '@jest/globals';
import type { CheckoutInvoice, NewCompanyPayment } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { get } from './emulator.client.js';
import type { Receiver } from './emulator.receiver.js';
import { stageEmulator } from './emulator.stage.js';

const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.000Z'));
let receiver: Receiver;
let emulator: PaymentsEmulator;

stageEmulator((stage) => ({ receiver, emulator } = stage), { clock });

/** A customer at an invoice, without a browser. */
class Customer {
  readonly invoice: CheckoutInvoice;

  constructor(more: Partial<NewCompanyPayment> = {}) {
    this.invoice = emulator.createCheckoutInvoice({
      amount: 1250,
      externalReference: 'order-77',
      ...more,
    });
  }

  get status(): string {
    return emulator.transaction(this.invoice.transactionId).status;
  }

  async page(): Promise<string> {
    return await (await get(this.invoice.checkoutUrl)).text();
  }

  /** Sends a form of the page as a browser does, and follows to the page. */
  async send(move: string, fields: Record<string, string> = {}): Promise<string> {
    const response = await fetch(`${this.invoice.checkoutUrl}/${move}`, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { origin: emulator.baseUrl, 'sec-fetch-site': 'same-origin' },
    });
    expect(response.status).toBe(200);
    expect(response.redirected).toBe(true);
    return await response.text();
  }

  /** Up to the code that "came by SMS". */
  async code(phoneNumber = '+1 555 010 0123'): Promise<string> {
    return codeIn(await this.send('phone', { phoneNumber }));
  }

  async confirm(): Promise<string> {
    return await this.send('code', { code: await this.code() });
  }
}

function codeIn(page: string): string {
  const [, code = ''] = /class="digits">(\d{6})</.exec(page) ?? [];
  expect(code).not.toBe('');
  return code;
}

/** Any six digits but these. */
const otherThan = (code: string): string => String((Number(code) + 1) % 1e6).padStart(6, '0');

describe('the hosted checkout', () => {
  it('takes a phone number, then the code it shows, then the payment, and the webhook goes out', async () => {
    const customer = new Customer();
    const { transactionId } = customer.invoice;
    expect(await customer.page()).toContain('1,250');
    expect(await customer.confirm()).toContain('Pay 1,250');
    expect(customer.status).toBe('pending');
    expect(await customer.send('pay')).toContain('>Paid<');
    expect(customer.status).toBe('complete');
    await emulator.idle();
    expect(receiver.received.map(({ event }) => [event.eventType, event.data])).toEqual([
      ['transaction.completed', expect.objectContaining({ transactionId, status: 'complete' })],
    ]);
  });

  it('pays once, however often its form is sent', async () => {
    const customer = new Customer();
    await customer.confirm();
    await Promise.all([customer.send('pay'), customer.send('pay'), customer.send('pay')]);
    expect(await customer.send('code', { code: '000000' })).toContain('>Paid<');
    expect(await customer.send('decline')).toContain("It can't be paid twice");
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
  });

  it('pays nothing before the code was right', async () => {
    const customer = new Customer();
    await customer.send('pay');
    await customer.code();
    await customer.send('pay');
    expect(await customer.send('decline')).toContain('One-time code');
    expect(customer.status).toBe('pending');
  });

  it('declines: the transaction has failed, no event tells of it, and it can not be paid', async () => {
    const customer = new Customer();
    await customer.confirm();
    expect(await customer.send('decline')).toContain('>Declined<');
    expect(customer.status).toBe('failed');
    expect(await customer.send('pay')).toContain('>Declined<');
    await emulator.idle();
    expect(customer.status).toBe('failed');
    expect(receiver.received).toEqual([]);
  });

  it('cancels: nothing is paid, and the invoice can be paid later', async () => {
    const customer = new Customer();
    await customer.confirm();
    expect(await customer.send('cancel')).toContain('The invoice is still open');
    expect(await customer.send('pay')).toContain('>Cancelled<');
    expect(customer.status).toBe('pending');
    expect(await customer.send('restart')).toContain('name="phoneNumber"');
    await customer.confirm();
    expect(await customer.send('pay')).toContain('>Paid<');
  });

  it('says what is already so: completed or declined elsewhere', async () => {
    const [paid, failed] = [new Customer(), new Customer()];
    await paid.confirm();
    emulator.complete(paid.invoice.transactionId);
    emulator.fail(failed.invoice.transactionId);
    expect(await paid.send('pay')).toContain('>Paid<');
    expect(await failed.page()).toContain('>Declined<');
    expect(await failed.send('phone', { phoneNumber: '5550100' })).toContain('>Declined<');
  });

  it.each(['', '12', 'call me', '1234567890123456', '+1 555 <b>'])(
    'asks again for the phone number %j, and keeps what was typed as text',
    async (phoneNumber) => {
      const page = await new Customer().send('phone', { phoneNumber });
      expect(page).toContain('role="alert"');
      expect(page).toContain('aria-invalid="true"');
      expect(page).toContain(`value="${phoneNumber.replace('<', '&lt;').replace('>', '&gt;')}"`);
    },
  );

  it('shows the page in place of controls JSON where there is no such invoice', async () => {
    const { transactionId } = emulator.createPayout({ amount: 1, externalReference: 'x' });
    for (const id of [transactionId, 'none', '%3Cb%3E']) {
      const response = await get(`${emulator.baseUrl}/emulator/checkout/${id}`);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-type')).toContain('text/html');
      const text = await response.text();
      expect(text).toContain('No such invoice');
      expect(text).not.toContain('<b>');
    }
    // The page was open when the emulator began anew.
    for (const move of ['pay', 'phone', 'code']) {
      const pressed = `${emulator.baseUrl}/emulator/checkout/none/${move}`;
      const response = await fetch(pressed, { method: 'POST' });
      expect(response.status).toBe(404);
      expect(await response.text()).toContain('No such invoice');
    }
    const { checkoutUrl } = new Customer().invoice;
    expect((await fetch(`${checkoutUrl}/steal`, { method: 'POST' })).status).toBe(400);
  });

  it('shows markup in a reference as text', async () => {
    const externalReference = '<script>alert(1)</script>"\'&';
    const page = await new Customer({ externalReference }).page();
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;');
    expect(page).not.toContain('<script>');
  });

  it('leads back to the merchant where an address was given, its host in sight', async () => {
    const customer = new Customer({ returnUrl: 'https://shop.example/orders/7?a=1&b=2' });
    await customer.confirm();
    const page = await customer.send('pay');
    expect(page).toContain('href="https://shop.example/orders/7?a=1&amp;b=2"');
    expect(page).toContain('(shop.example)');
    const closing = new Customer();
    await closing.confirm();
    expect(await closing.send('pay')).toContain('You can close this page');
  });

  it('is forgotten with a reset', async () => {
    await using seeded = await PaymentsEmulator.start({ seed: 'checkout' });
    const open = () => seeded.createCheckoutInvoice({ amount: 1, externalReference: 'x' });
    const { checkoutUrl } = open();
    await fetch(`${checkoutUrl}/phone`, {
      method: 'POST',
      body: new URLSearchParams({ phoneNumber: '5550100' }),
    });
    await seeded.reset();
    expect(open().checkoutUrl).toBe(checkoutUrl);
    expect(await (await get(checkoutUrl)).text()).toContain('name="phoneNumber"');
  });
});

describe('the one-time code', () => {
  it('is refused when it is wrong, and taken when it is right', async () => {
    const customer = new Customer();
    const code = await customer.code();
    const page = await customer.send('code', { code: otherThan(code) });
    expect(page).toContain('That is not the code. 2 tries left.');
    expect(await customer.send('code', { code: `${code.slice(0, 3)} ${code.slice(3)}` })).toContain(
      'Code accepted',
    );
  });

  it('is void after three wrong tries, the right one included, until another is sent', async () => {
    const customer = new Customer();
    const code = await customer.code();
    const wrong = { code: otherThan(code) };
    await customer.send('code', wrong);
    expect(await customer.send('code', wrong)).toContain('1 try left');
    expect(await customer.send('code', wrong)).toContain('Too many wrong tries');
    expect(await customer.send('code', { code })).toContain('Too many wrong tries');
    const next = codeIn(await customer.send('resend'));
    expect(await customer.send('code', { code: next })).toContain('Code accepted');
  });

  it('counts no try for what is not six digits', async () => {
    const customer = new Customer();
    await customer.code();
    expect(await customer.send('code', { code: '12' })).toContain('The code is six digits.');
    expect(await customer.send('code')).toContain('The code is six digits.');
    expect(await customer.send('code', { code: '1' })).not.toContain('Too many');
  });

  it("expires after five minutes of the emulator's clock", async () => {
    const [inTime, late] = [new Customer(), new Customer()];
    const codes = [await inTime.code(), await late.code()];
    clock.advance(299_999);
    expect(await inTime.send('code', { code: codes[0] ?? '' })).toContain('Code accepted');
    clock.advance(1);
    expect(await late.page()).toContain('This code has expired');
    expect(await late.send('code', { code: codes[1] ?? '' })).toContain('This code has expired');
    expect(late.status).toBe('pending');
  });

  it('works once: another one takes its place, and it confirms no second time', async () => {
    const customer = new Customer();
    const first = await customer.code();
    const second = codeIn(await customer.send('resend'));
    expect(second).not.toBe(first);
    expect(await customer.send('code', { code: first })).toContain('That is not the code');
    await customer.send('code', { code: second });
    await customer.send('cancel');
    await customer.send('restart');
    expect(await customer.send('code', { code: second })).toContain('name="phoneNumber"');
  });

  it('is of the invoice it was sent for', async () => {
    const [one, other] = [new Customer(), new Customer()];
    const code = await one.code();
    expect(await other.code()).not.toBe(code);
    expect(await other.send('code', { code })).toContain('That is not the code');
  });

  it('is drawn from the seed', async () => {
    const codes: string[] = [];
    for (let run = 0; run < 2; run++) {
      await using seeded = await PaymentsEmulator.start({ seed: 'codes' });
      const { checkoutUrl } = seeded.createCheckoutInvoice({ amount: 1, externalReference: 'x' });
      const form = { method: 'POST', body: new URLSearchParams({ phoneNumber: '5550100' }) };
      codes.push(codeIn(await (await fetch(`${checkoutUrl}/phone`, form)).text()));
    }
    expect(codes[0]).toBe(codes[1]);
  });
});
