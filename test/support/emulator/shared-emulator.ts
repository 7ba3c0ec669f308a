import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { PaymentsEmulatorOptions } from 'payments-emulator';
import { WebhookReceiver } from './webhook-receiver.js';

/** An emulator, the URL of its controls, and the receiver of its webhook requests. */
interface SharedEmulator {
  readonly receiver: WebhookReceiver;
  readonly emulator: PaymentsEmulator;
  readonly controls: string;
}

/** Starts an emulator and a receiver for all tests of a file, and resets both before each test. */
export function useEmulator(
  started: (shared: SharedEmulator) => void,
  options: PaymentsEmulatorOptions = {},
): void {
  let receiver: WebhookReceiver;
  let emulator: PaymentsEmulator;

  beforeAll(async () => {
    receiver = await WebhookReceiver.start();
    emulator = await PaymentsEmulator.start({ webhookUrl: receiver.url, ...options });
    started({ receiver, emulator, controls: `${emulator.baseUrl}/emulator` });
  });
  beforeEach(async () => {
    await emulator.reset();
    receiver.received.length = 0;
    receiver.respondWith(200);
  });
  afterAll(async () => {
    await emulator.close();
    await receiver[Symbol.asyncDispose]();
  });
}
