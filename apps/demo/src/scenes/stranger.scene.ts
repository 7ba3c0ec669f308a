import type { Scene } from './scene.js';

/** Money nobody asked for is money all the same. */
export const stranger: Scene = {
  title: 'Somebody pays for an order that does not exist',
  async play({ customer, emulator, report }) {
    const push = emulator.createStkPush({ amount: 250, externalReference: 'walk-in-13' });
    emulator.complete(push.transactionId);
    await emulator.idle();
    await report.check('the payment in the ledger', 'unmatched', async () => {
      const booked = (await customer.ledger()).find(({ reference }) => reference === 'walk-in-13');
      return booked?.unmatched ? 'unmatched' : String(booked && 'matched');
    });
  },
};
