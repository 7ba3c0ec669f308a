import type { Scene } from './scene.js';

/** Another event, with its own id, about a payment that is booked: the inbox recognises it by its transaction. */
export const toldAgain: Scene = {
  title: 'A second event tells of a payment that is booked already',
  async play({ customer, deliveries, emulator, report }) {
    const [{ transactionId, status, amount, accountReference, externalReference }] =
      emulator.transactions() as [ReturnType<typeof emulator.transaction>];
    emulator.sendEvent({
      eventType: 'transaction.completed',
      data: { transactionId, status, amount, accountReference, externalReference },
    });
    await emulator.idle();
    await report.check('the delivery', 200, () => deliveries.at(-1)?.answer?.status);
    await report.check('entries of it in the ledger', 1, async () => {
      const ledger = await customer.ledger();
      return ledger.filter((entry) => entry.transactionId === transactionId).length;
    });
  },
};
