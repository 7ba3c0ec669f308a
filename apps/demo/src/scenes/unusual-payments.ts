import type { Scene } from '../demo-environment.js';

/**
 * A scene with partial payments. The shop records each of them. The order is paid when the sum of its payments covers
 * its amount.
 */
export const partialPayments: Scene = {
  title: 'A customer pays an order in two parts, from the phone',
  async play({ customer, emulator, report }) {
    const { reference } = await customer.createOrder('blanket-7', 1500);
    const payPart = async (amount: number): Promise<void> => {
      const push = emulator.createStkPush({ amount, externalReference: reference });
      emulator.complete(push.transactionId);
      await emulator.idle();
    };
    const orderState = async (): Promise<string> => {
      const { status, amount, amountPaid = amount } = await customer.order(reference);
      return `${status}, ${amountPaid}`;
    };
    await payPart(600);
    await report.check('after the first 600 of 1500', 'pending, 600', orderState);
    await payPart(900);
    await report.check('after the other 900', 'paid, 1500', orderState);
  },
};

/** A scene with a payment that belongs to no order. The shop records the payment and marks it as unmatched. */
export const unmatchedPayment: Scene = {
  title: 'A payment arrives for an order that does not exist',
  async play({ customer, emulator, report }) {
    const push = emulator.createStkPush({ amount: 250, externalReference: 'walk-in-13' });
    emulator.complete(push.transactionId);
    await emulator.idle();
    await report.check('the payment in the ledger', 'unmatched', async () => {
      const entry = (await customer.ledger()).find(({ reference }) => reference === 'walk-in-13');
      return entry?.unmatched ? 'unmatched' : String(entry && 'matched');
    });
  },
};
