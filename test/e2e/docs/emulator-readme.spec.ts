import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const readme = readFileSync(new URL('../../../libs/emulator/README.md', import.meta.url), 'utf8');

/** The TypeScript examples without their imports. They contain no types, so that they run as JavaScript. */
const examples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) =>
  code.replace(/^import .*$/gm, ''),
);

const AsyncFunction = (async () => undefined).constructor as new (
  ...source: string[]
) => (...values: unknown[]) => Promise<unknown>;

describe('the examples in the README of the emulator', () => {
  it('the examples in the README of the emulator start an emulator, set the webhook, complete a payment, and reset and close the emulator', async () => {
    await using receiver = await WebhookReceiver.start();
    const applicationUrl = new URL(receiver.url).origin;
    const example = new AsyncFunction('PaymentsEmulator', 'applicationUrl', examples[0] ?? '');
    await example(PaymentsEmulator, applicationUrl);
    expect(receiver.received.map(({ event }) => event.data['externalReference'])).toEqual([
      'order-77',
    ]);
  });

  it('the examples in the README of the emulator contain a valid fault plan', async () => {
    await using emulator = await PaymentsEmulator.start();
    await new AsyncFunction('emulator', examples[1] ?? '')(emulator);
    expect(Object.keys(emulator.faults())).toEqual(['delivery', 'token', 'api']);
  });
});
