import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { get } from '../../support/emulator/api-client.js';
import { CheckoutCustomer, codeIn } from '../../support/emulator/checkout-customer.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.000Z'));
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started), { clock });

describe('the hosted checkout', () => {
  it('the hosted checkout pays once if its form is sent several times', async () => {
    const customer = new CheckoutCustomer(emulator);
    await customer.confirm();
    await Promise.all([customer.send('pay'), customer.send('pay'), customer.send('pay')]);
    expect(await customer.send('code', { code: '000000' })).toContain('>Paid<');
    expect(await customer.send('decline')).toContain("It can't be paid twice");
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
  });

  it('the hosted checkout pays nothing before the code is confirmed', async () => {
    const customer = new CheckoutCustomer(emulator);
    await customer.send('pay');
    await customer.requestCode();
    await customer.send('pay');
    expect(await customer.send('decline')).toContain('One-time code');
    expect(customer.status).toBe('pending');
  });

  it('the hosted checkout declines a payment: the transaction fails, no event is sent, and the invoice can no longer be paid', async () => {
    const customer = new CheckoutCustomer(emulator);
    await customer.confirm();
    expect(await customer.send('decline')).toContain('>Declined<');
    expect(customer.status).toBe('failed');
    expect(await customer.send('pay')).toContain('>Declined<');
    await emulator.idle();
    expect(customer.status).toBe('failed');
    expect(receiver.received).toEqual([]);
  });

  it('the hosted checkout cancels without a payment, and allows a later payment of the invoice', async () => {
    const customer = new CheckoutCustomer(emulator);
    await customer.confirm();
    expect(await customer.send('cancel')).toContain('The invoice is still open');
    expect(await customer.send('pay')).toContain('>Cancelled<');
    expect(customer.status).toBe('pending');
    expect(await customer.send('restart')).toContain('name="phoneNumber"');
    await customer.confirm();
    expect(await customer.send('pay')).toContain('>Paid<');
  });

  it('the hosted checkout shows that the controls have completed or declined the invoice', async () => {
    const [paid, failed] = [new CheckoutCustomer(emulator), new CheckoutCustomer(emulator)];
    await paid.confirm();
    emulator.complete(paid.invoice.transactionId);
    emulator.fail(failed.invoice.transactionId);
    expect(await paid.send('pay')).toContain('>Paid<');
    expect(await failed.page()).toContain('>Declined<');
    expect(await failed.send('phone', { phoneNumber: '5550100' })).toContain('>Declined<');
  });

  it.each(['', '12', 'call me', '1234567890123456', '+1 555 <b>'])(
    'the hosted checkout rejects the phone number %j and keeps the typed text',
    async (phoneNumber) => {
      const page = await new CheckoutCustomer(emulator).send('phone', { phoneNumber });
      expect(page).toContain('role="alert"');
      expect(page).toContain('aria-invalid="true"');
      expect(page).toContain(`value="${phoneNumber.replace('<', '&lt;').replace('>', '&gt;')}"`);
    },
  );

  it('the hosted checkout shows a page instead of JSON if the invoice does not exist', async () => {
    const { transactionId } = emulator.createPayout({ amount: 1, externalReference: 'x' });
    for (const id of [transactionId, 'none', '%3Cb%3E']) {
      const response = await get(`${emulator.baseUrl}/emulator/checkout/${id}`);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-type')).toContain('text/html');
      const text = await response.text();
      expect(text).toContain('No such invoice');
      expect(text).not.toContain('<b>');
    }
    // The browser sends a form of a page that was open while the emulator restarted.
    for (const move of ['pay', 'phone', 'code']) {
      const pressed = `${emulator.baseUrl}/emulator/checkout/none/${move}`;
      const response = await fetch(pressed, { method: 'POST' });
      expect(response.status).toBe(404);
      expect(await response.text()).toContain('No such invoice');
    }
    const { checkoutUrl } = new CheckoutCustomer(emulator).invoice;
    expect((await fetch(`${checkoutUrl}/steal`, { method: 'POST' })).status).toBe(400);
  });

  it('the hosted checkout escapes markup in both references', async () => {
    const externalReference = '<script>alert(1)</script>"\'&';
    const accountReference = `${externalReference}-account`;
    const customer = new CheckoutCustomer(emulator, { externalReference, accountReference });
    const page = await customer.page();
    const escaped = '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;';
    expect(page).toContain(`${escaped}<`);
    expect(page).toContain(`${escaped}-account`);
    expect(page).not.toContain('<script>');
  });

  it("the hosted checkout links back to the merchant's return URL and shows its host", async () => {
    const customer = new CheckoutCustomer(emulator, {
      returnUrl: 'https://shop.example/orders/7?a=1&b=2',
    });
    await customer.confirm();
    const page = await customer.send('pay');
    expect(page).toContain('href="https://shop.example/orders/7?a=1&amp;b=2"');
    expect(page).toContain('(shop.example)');
    const closing = new CheckoutCustomer(emulator);
    await closing.confirm();
    expect(await closing.send('pay')).toContain('You can close this page');
  });

  it('the hosted checkout starts again from its first step after a reset of the emulator', async () => {
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

/** Returns another code than the given one. */
const otherThan = (code: string): string => String((Number(code) + 1) % 1e6).padStart(6, '0');

describe('the one-time code', () => {
  it('the one-time code is rejected if it is wrong, and accepted if it is correct', async () => {
    const customer = new CheckoutCustomer(emulator);
    const code = await customer.requestCode();
    const page = await customer.send('code', { code: otherThan(code) });
    expect(page).toContain('The code is wrong. 2 tries left.');
    expect(await customer.send('code', { code: `${code.slice(0, 3)} ${code.slice(3)}` })).toContain(
      'Code accepted',
    );
  });

  it('the one-time code is invalid after three wrong inputs, until another code is sent', async () => {
    const customer = new CheckoutCustomer(emulator);
    const code = await customer.requestCode();
    const wrong = { code: otherThan(code) };
    await customer.send('code', wrong);
    expect(await customer.send('code', wrong)).toContain('1 try left');
    expect(await customer.send('code', wrong)).toContain('Too many wrong tries');
    expect(await customer.send('code', { code })).toContain('Too many wrong tries');
    const next = codeIn(await customer.send('resend'));
    expect(await customer.send('code', { code: next })).toContain('Code accepted');
  });

  it('the limit of wrong inputs for the one-time code does not count inputs that are not six digits', async () => {
    const customer = new CheckoutCustomer(emulator);
    await customer.requestCode();
    expect(await customer.send('code', { code: '12' })).toContain('The code has six digits.');
    expect(await customer.send('code')).toContain('The code has six digits.');
    expect(await customer.send('code', { code: '1' })).not.toContain('Too many');
  });

  it("the one-time code expires after five minutes of the emulator's clock", async () => {
    const [inTime, late] = [new CheckoutCustomer(emulator), new CheckoutCustomer(emulator)];
    const codes = [await inTime.requestCode(), await late.requestCode()];
    clock.advance(299_999);
    expect(await inTime.send('code', { code: codes[0] ?? '' })).toContain('Code accepted');
    clock.advance(1);
    expect(await late.page()).toContain('This code has expired');
    expect(await late.send('code', { code: codes[1] ?? '' })).toContain('This code has expired');
    expect(late.status).toBe('pending');
  });

  it('the one-time code is valid once, and invalid after another code is sent', async () => {
    const customer = new CheckoutCustomer(emulator);
    const first = await customer.requestCode();
    const second = codeIn(await customer.send('resend'));
    expect(second).not.toBe(first);
    expect(await customer.send('code', { code: first })).toContain('The code is wrong');
    await customer.send('code', { code: second });
    await customer.send('cancel');
    await customer.send('restart');
    expect(await customer.send('code', { code: second })).toContain('name="phoneNumber"');
  });

  it('the one-time code is valid for its own invoice only', async () => {
    const [one, other] = [new CheckoutCustomer(emulator), new CheckoutCustomer(emulator)];
    const code = await one.requestCode();
    expect(await other.requestCode()).not.toBe(code);
    expect(await other.send('code', { code })).toContain('The code is wrong');
  });
});
