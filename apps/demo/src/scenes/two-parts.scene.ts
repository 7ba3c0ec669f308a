import type { Scene } from './scene.js';

/** Less than was asked for is money too, but pays no order. */
export const twoParts: Scene = {
  title: 'An order is paid in two parts, from the phone',
  async play({ customer, emulator, report }) {
    const { reference } = await customer.place('blanket-7', 1500);
    const payPart = async (amount: number): Promise<void> => {
      const push = emulator.createStkPush({ amount, externalReference: reference });
      emulator.complete(push.transactionId);
      await emulator.idle();
    };
    const see = async (): Promise<string> => {
      const { status, amount, amountPaid = amount } = await customer.order(reference);
      return `${status}, ${amountPaid}`;
    };
    await payPart(600);
    await report.check('after the first 600 of 1500', 'pending, 600', see);
    await payPart(900);
    await report.check('after the other 900', 'paid, 1500', see);
  },
};
