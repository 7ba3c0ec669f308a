import type { Scene } from '../demo-environment.js';

/** A scene in which the merchant requests a test webhook through the API of the payments service. */
export const testWebhook: Scene = {
  title: 'The merchant requests a test webhook',
  async play({ emulator, report, service }) {
    const token = await service.token();
    await report.check('POST /v1/webhooks/test', 200, () => service.sendTestWebhook(token), 0);
    await report.check(
      'the response of the shop to the delivery',
      200,
      () => emulator.deliveries({ eventType: 'webhook.test' })[0]?.response?.status,
    );
  },
};

/**
 * A scene in which an event with a new id reports a payment that the shop has already recorded. The inbox detects the
 * duplicate by the id of the transaction.
 */
export const duplicateEvent: Scene = {
  title: 'A second event reports a payment that is recorded already',
  async play({ customer, deliveries, emulator, report }) {
    const [{ transactionId, status, amount, accountReference, externalReference }] =
      emulator.transactions() as [ReturnType<typeof emulator.transaction>];
    emulator.sendEvent({
      eventType: 'transaction.completed',
      data: { transactionId, status, amount, accountReference, externalReference },
    });
    await emulator.idle();
    await report.check('the delivery', 200, () => deliveries.at(-1)?.response?.status);
    await report.check('ledger entries of the payment', 1, async () => {
      const ledger = await customer.ledger();
      return ledger.filter((entry) => entry.transactionId === transactionId).length;
    });
  },
};

/**
 * A scene in which the amount in a webhook request is changed in transit. The service then sends the event again,
 * unchanged.
 */
export const tamperedDelivery: Scene = {
  title: 'A delivery is tampered with in transit',
  async play({ customer, emulator, lastDelivery, pay, report }) {
    const order = await customer.createOrder('radio-8', 2400);
    emulator.setFaults({ delivery: { tamperBody: { next: 1 } } });
    const id = await pay(order);
    const delivery = await lastDelivery(id);
    emulator.setFaults({});
    const status = async () => (await customer.order(order.reference)).status;

    await report.check('another amount, same signature', 401, () => delivery?.response?.status);
    await report.check('the order', 'pending', status, 0);
    const again = await emulator.redeliver(delivery!.id);
    await report.check(
      'the same event, sent again without changes',
      200,
      () => again.response?.status,
    );
    await report.check('the order', 'paid', status);
  },
};
