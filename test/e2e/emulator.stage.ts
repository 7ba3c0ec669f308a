import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { PaymentsEmulatorOptions } from 'payments-emulator';
import { Receiver } from './emulator.receiver.js';

/** An emulator, and the receiver it delivers to. */
interface Stage {
  readonly receiver: Receiver;
  readonly emulator: PaymentsEmulator;
}

/** Starts one for all tests of a file, which `started` is given once; each test finds both as new. */
export function stageEmulator(
  started: (stage: Stage) => void,
  options: PaymentsEmulatorOptions = {},
): void {
  let receiver: Receiver;
  let emulator: PaymentsEmulator;

  beforeAll(async () => {
    receiver = await Receiver.start();
    emulator = await PaymentsEmulator.start({ webhookUrl: receiver.url, ...options });
    started({ receiver, emulator });
  });
  beforeEach(async () => {
    await emulator.reset();
    receiver.received.length = 0;
    receiver.answerWith(200);
  });
  afterAll(async () => {
    await emulator.close();
    await receiver[Symbol.asyncDispose]();
  });
}
