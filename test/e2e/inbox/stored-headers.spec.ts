import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentInbox } from 'nestjs-payments';
import type { StoredEvent } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  ADAPTERS,
  OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';

const SECRETS = {
  Authorization: 'Bearer very-secret-1',
  Cookie: 'session=very-secret-2',
  'X-Auth-Token': 'Bearer very-secret-3',
  'Proxy-Authorization': 'Basic very-secret-4',
  'X-Forwarded-For': '203.0.113.77',
};

describe.each(Object.keys(ADAPTERS))('stored headers, on %s', (adapter) => {
  let app: WebhookApplication;
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      controllers: [OnMethods],
    });
  });
  afterAll(async () => app.app.close());

  async function stored(path: string | undefined, more: Record<string, string>) {
    const webhook = signedWebhook(OPTIONS);
    const { id } = JSON.parse(webhook.body.toString()) as { id: string };
    const response = await app.send(webhook, { ...(path && { path }), headers: more });
    expect(response.status).toBe(200);
    const event = await app.app.get(PaymentInbox).get(id);
    return { webhook, event: event as StoredEvent };
  }

  const receivers = { 'the endpoint': undefined, 'a controller of the application': '/method' };
  it.each(Object.entries(receivers))(
    'the inbox stores only the content, trace and request id headers of webhook requests to %s',
    async (_receiver, path) => {
      const { webhook, event } = await stored(path, {
        ...SECRETS,
        'X-Request-Id': `r-1${'x'.repeat(300)}`,
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      });
      expect(event.headers).toEqual({
        'content-type': 'application/json',
        'content-length': String(webhook.body.byteLength),
        'user-agent': 'nestjs-payments-testing-Webhook/1.0',
        'x-webhook-event': 'transaction.completed',
        'x-request-id': `r-1${'x'.repeat(253)}`,
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      });
    },
  );
});
