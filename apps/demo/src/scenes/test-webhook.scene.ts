import type { Scene } from './scene.js';

/** The merchant tries the wiring, through the service's own API. */
export const testWebhook: Scene = {
  title: 'The service is asked for a test webhook',
  async play({ emulator, report, service }) {
    const token = await service.token();
    await report.check('POST /v1/webhooks/test', 200, () => service.sendTestWebhook(token), 0);
    await report.check(
      'the shop answered the delivery',
      200,
      () => emulator.deliveries({ eventType: 'webhook.test' })[0]?.answer?.status,
    );
  },
};
