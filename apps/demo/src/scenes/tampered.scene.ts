import type { Scene } from './scene.js';

/** Somebody changes the amount on the way. The service sends it again, and this time it arrives as it was. */
export const tampered: Scene = {
  title: 'A delivery is tampered with on its way',
  async play({ customer, emulator, lastDelivery, pay, report }) {
    const order = await customer.place('radio-8', 2400);
    emulator.setFaults({ delivery: { tamperBody: { next: 1 } } });
    const id = await pay(order);
    const delivery = await lastDelivery(id);
    emulator.setFaults({});
    const status = async () => (await customer.order(order.reference)).status;

    await report.check('another amount, the old signature', 401, () => delivery?.answer?.status);
    await report.check('the order', 'pending', status, 0);
    const again = await emulator.redeliver(delivery!.id);
    await report.check('the same event, sent again as it was', 200, () => again.answer?.status);
    await report.check('the order', 'paid', status);
  },
};
