import type { Scene } from './scene.js';

const TWO_HOURS_MS = 7_200_000;

/** Two hours pass at the service, whose tokens live for one. The shop, whose clock is right, can't know. */
export const expiredToken: Scene = {
  title: 'The access token expires in the middle of the day',
  async play({ clock, customer, emulator, lastDelivery, pay, report, service }) {
    const [transaction] = emulator.transactions();
    const token = await service.token();
    const ask = () => service.getTransaction(token, transaction!.transactionId);
    await report.check('the API, asked with a token of now', 200, ask, 0);
    clock.setAhead(TWO_HOURS_MS);
    await report.check('the API, asked with it two hours later', 401, ask, 0);

    const order = await customer.place('lamp-12', 899);
    await report.check('the shop gets an invoice all the same', 'yes', () =>
      order.checkoutUrl === null ? 'no' : 'yes',
    );
    const delivery = await lastDelivery(await pay(order));
    await report.check('the delivery of its payment', 200, () => delivery?.answer?.status);
    await report.check('the order', 'paid', async () => (await customer.order('lamp-12')).status);
  },
};
