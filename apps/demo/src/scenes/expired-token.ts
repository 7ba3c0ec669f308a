import type { Scene } from '../demo-environment.js';

const TWO_HOURS_MS = 7_200_000;

/**
 * A scene in which the clock of the service is advanced by two hours, so that its tokens expire. The clock of the shop
 * does not change.
 */
export const expiredToken: Scene = {
  title: 'The access token expires',
  async play({ clock, customer, emulator, lastDelivery, pay, report, service }) {
    const [transaction] = emulator.transactions();
    const token = await service.token();
    const request = () => service.getTransaction(token, transaction!.transactionId);
    await report.check('a request to the API with a new token', 200, request, 0);
    clock.advance(TWO_HOURS_MS);
    await report.check('the same request two hours later', 401, request, 0);

    const order = await customer.createOrder('lamp-12', 899);
    await report.check('the shop gets an invoice', 'yes', () =>
      order.checkoutUrl === null ? 'no' : 'yes',
    );
    const delivery = await lastDelivery(await pay(order));
    await report.check('the delivery for the payment', 200, () => delivery?.response?.status);
    await report.check('the order', 'paid', async () => (await customer.order('lamp-12')).status);
  },
};
