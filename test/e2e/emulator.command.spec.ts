import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { post, requestToken } from './emulator.client.js';
import { Receiver } from './emulator.receiver.js';

// A process takes its time to start on a busy machine.
jest.setTimeout(60_000);

const main = fileURLToPath(new URL('../../libs/emulator/dist/main.js', import.meta.url));
const started = new Set<ChildProcessByStdio<null, Readable, Readable>>();

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
});

/** Runs the command and collects what it prints. */
function run(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  started.add(child);
  const printed = { out: '', err: '' };
  child.stdout.on('data', (data: Buffer) => (printed.out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (printed.err += data.toString()));
  const ended = once(child, 'close').then(([code]) => code as number);
  /** What a pattern finds in the output, as soon as it is there. */
  const found = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(printed.out);
      if (match) return match;
      await once(child.stdout, 'data');
    }
  };
  return { child, printed, ended, found };
}

describe('the payments-emulator command', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'prints settings that work, a line per delivery, and ends cleanly on %s',
    async (signal) => {
      await using receiver = await Receiver.start();
      const ports = ['--port', '0', '--production-port', '0'];
      const { child, printed, ended, found } = run(...ports, '--webhook-url', receiver.url);
      const [, baseUrl = '', clientId = '', clientSecret = ''] = await found(
        /^PAYMENTS_BASE_URL=(.+)\nPAYMENTS_CLIENT_ID=(.+)\nPAYMENTS_CLIENT_SECRET=(.+)\nPAYMENTS_WEBHOOK_SECRET=.+\n/m,
      );
      expect((await requestToken({ baseUrl, clientId, clientSecret })).status).toBe(200);
      await post(`${baseUrl}/emulator/events`, { eventType: 'x.y' });
      await found(/^ {2}pages {7}http:\S+\/emulator \(.+\), http:\S+\/emulator\/stk /m);
      await found(/^x\.y {2}default {2}attempt 1 {2}delivered {2}200 {2}\d+ ms$/m);
      expect(receiver.first.event.eventType).toBe('x.y');
      child.kill(signal);
      expect(await ended).toBe(0);
      expect(printed.err).toBe('');
    },
  );

  it('ends with 2 and one clear message where a flag is wrong', async () => {
    const { printed, ended } = run('--port', '70000');
    expect(await ended).toBe(2);
    expect(printed.out).toBe('');
    expect(printed.err).toBe(
      'payments-emulator: --port must be a whole number from 0 to 65535\n' +
        'payments-emulator --help lists the flags.\n',
    );
  });

  it('ends quietly where nobody reads on: payments-emulator --help | head', async () => {
    const { child, printed, ended } = run('--help');
    child.stdout.destroy();
    expect(await ended).toBe(0);
    expect(printed.err).toBe('');
  });

  it('closes where nobody reads what it prints any more', async () => {
    const ports = ['--port', '0', '--production-port', '0'];
    const { child, printed, ended, found } = run(...ports);
    const [, baseUrl = ''] = await found(/^PAYMENTS_BASE_URL=(.+)\n/m);
    child.stdout.destroy();
    await post(`${baseUrl}/emulator/events`, { eventType: 'x.y' });
    expect(await ended).toBe(0);
    expect(printed.err).toBe('');
  });
});
