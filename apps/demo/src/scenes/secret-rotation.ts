import type { Scene } from '../demo-environment.js';

/**
 * A scene in which the webhook secret changes while webhook requests are in transit. The shop accepts the old and the
 * new secret.
 */
export const secretRotation: Scene = {
  title: 'The webhook secret is rotated, and the shop accepts both secrets',
  async play({ customer, emulator, lastDelivery, newSecret, pay, report }) {
    const statusOf = async (reference: string): Promise<number | undefined> => {
      const id = await pay(await customer.createOrder(reference, 75));
      return (await lastDelivery(id))?.response?.status;
    };
    emulator.rotateWebhookSecret({ secret: newSecret });
    emulator.setFaults({ delivery: { oldSecret: { next: 1 } } });
    const withOld = await statusOf('soap-9');
    emulator.setFaults({});
    await report.check('a delivery signed with the old secret', 200, () => withOld);
    const withNew = await statusOf('soap-10');
    await report.check('a delivery signed with the new secret', 200, () => withNew);

    emulator.setWebhook({ secret: 'whsec_unknown' });
    const withUnknown = await statusOf('soap-11');
    await report.check('a delivery signed with an unknown secret', 401, () => withUnknown);
    await report.check(
      'the order of this delivery',
      'pending',
      async () => (await customer.order('soap-11')).status,
      0,
    );
    emulator.setWebhook({ secret: newSecret });
    const rejected = emulator.deliveries({ state: 'failed' }).at(-1);
    const again = await emulator.redeliver(rejected!.id);
    await report.check('sent again, signed with the new secret', 200, () => again.response?.status);
    await report.check(
      'the order of this delivery',
      'paid',
      async () => (await customer.order('soap-11')).status,
    );
  },
};
