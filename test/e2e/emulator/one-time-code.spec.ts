import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { CheckoutCustomer, codeIn } from '../../support/emulator/checkout-customer.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.000Z'));
let emulator: PaymentsEmulator;

useEmulator((started) => ({ emulator } = started), { clock });

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

  it('the one-time code is invalid after three wrong tries, until another one is sent', async () => {
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

  it('the one-time code does not count input that is not six digits as a try', async () => {
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

  it('the one-time code is valid once, and invalid after another one is sent', async () => {
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

  it('the one-time code repeats with the seed', async () => {
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
