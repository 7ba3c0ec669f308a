import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { post, requestToken } from '../../support/emulator/api-client.js';
import {
  emulatorCommand,
  FREE_PORTS,
  runEmulator,
} from '../../support/emulator/emulator-process.js';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

describe('the payments-emulator command', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'the payments-emulator command prints valid settings and a line per delivery, and exits with 0 on %s',
    async (signal) => {
      await using receiver = await WebhookReceiver.start();
      const emulator = runEmulator(...FREE_PORTS, '--webhook-url', receiver.url);
      const [, baseUrl = '', clientId = '', clientSecret = ''] = await emulator.prints(
        /^export PAYMENTS_BASE_URL=(.+)\nexport PAYMENTS_CLIENT_ID=(.+)\nexport PAYMENTS_CLIENT_SECRET=(.+)\nexport PAYMENTS_WEBHOOK_SECRET=.+\n/m,
      );
      expect((await requestToken({ baseUrl, clientId, clientSecret })).status).toBe(200);
      await post(`${baseUrl}/emulator/events`, { eventType: 'x.y' });
      await emulator.prints(/^ {2}pages {7}http:\S+\/emulator \(.+\), http:\S+\/emulator\/stk /m);
      await emulator.prints(/^x\.y {2}default {2}attempt 1 {2}delivered {2}200 {2}\d+ ms$/m);
      expect(receiver.first.event.eventType).toBe('x.y');
      expect(await emulator.kill(signal)).toEqual({ code: 0, signal: null });
      expect(emulator.stderr).toBe('');
    },
  );

  it('the payments-emulator command names the port that is in use and its flag, without a stack trace', async () => {
    await using running = await PaymentsEmulator.start();
    const { port } = new URL(running.baseUrl);
    expect(await emulatorCommand('--port', port, '--production-port', '0')).toEqual({
      code: 1,
      out: '',
      err:
        `payments-emulator: port ${port} on 127.0.0.1 is in use, perhaps by another payments-emulator. ` +
        'Stop that process, or choose another port with --port (0 selects a free one)\n',
    });
  });

  it('payments-emulator --help exits without an error if its output is closed', async () => {
    const emulator = runEmulator('--help');
    emulator.closeOutput();
    expect(await emulator.ended).toEqual({ code: 0, signal: null });
    expect(emulator.stderr).toBe('');
  });

  it('the payments-emulator command closes the emulator if its output is closed', async () => {
    const emulator = runEmulator(...FREE_PORTS);
    const [, baseUrl = ''] = await emulator.prints(/^export PAYMENTS_BASE_URL=(.+)\n/m);
    emulator.closeOutput();
    await post(`${baseUrl}/emulator/events`, { eventType: 'x.y' });
    expect(await emulator.ended).toEqual({ code: 0, signal: null });
    expect(emulator.stderr).toBe('');
  });
});
