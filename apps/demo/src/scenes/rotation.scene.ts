import type { Scene } from './scene.js';

/** The secret is rotated while deliveries are on their way; the shop lists the old one and the new. */
export const rotation: Scene = {
  title: 'The webhook secret is rotated; the shop lists both',
  async play({ customer, emulator, lastDelivery, newSecret, pay, report }) {
    const answerTo = async (reference: string): Promise<number | undefined> => {
      const id = await pay(await customer.place(reference, 75));
      return (await lastDelivery(id))?.answer?.status;
    };
    emulator.rotateWebhookSecret({ secret: newSecret });
    emulator.setFaults({ delivery: { oldSecret: { next: 1 } } });
    const late = await answerTo('soap-9');
    emulator.setFaults({});
    await report.check('a delivery signed with the old secret', 200, () => late);
    const current = await answerTo('soap-10');
    await report.check('a delivery signed with the new one', 200, () => current);

    emulator.setWebhook({ secret: 'whsec_never_listed' });
    const stranger = await answerTo('soap-11');
    await report.check('a delivery signed with a secret never listed', 401, () => stranger);
    await report.check(
      'its order',
      'pending',
      async () => (await customer.order('soap-11')).status,
      0,
    );
    emulator.setWebhook({ secret: newSecret });
    const refused = emulator.deliveries({ state: 'failed' }).at(-1);
    const again = await emulator.redeliver(refused!.id);
    await report.check('sent again, signed with the new secret', 200, () => again.answer?.status);
    await report.check('its order', 'paid', async () => (await customer.order('soap-11')).status);
  },
};
