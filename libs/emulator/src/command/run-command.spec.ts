import { afterEach, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from '../payments-emulator.js';
import { runCommand } from './run-command.js';

const started: PaymentsEmulator[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((emulator) => emulator.close()));
});

async function run(...args: string[]) {
  const printed = { out: '', err: '' };
  const result = await runCommand(args, {
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
  });
  if (result instanceof PaymentsEmulator) started.push(result);
  return { result, printed };
}

async function start(...args: string[]) {
  const { result, printed } = await run('--port', '0', '--production-port', '0', ...args);
  if (!(result instanceof PaymentsEmulator)) throw new Error(printed.err);
  return { emulator: result, printed };
}

describe('runCommand', () => {
  it('runCommand() prints the addresses and the settings of the application', async () => {
    const { emulator, printed } = await start('--webhook-secret', 'whsec_given');
    const { company } = emulator;
    expect(printed.out).toContain(
      [
        `export PAYMENTS_BASE_URL=${emulator.baseUrl}`,
        `export PAYMENTS_CLIENT_ID=${company.clientId}`,
        `export PAYMENTS_CLIENT_SECRET=${company.clientSecret}`,
        'export PAYMENTS_WEBHOOK_SECRET=whsec_given',
        '',
      ].join('\n'),
    );
    expect(printed.err).toBe('');
  });

  it('runCommand() omits a given secret that cannot be quoted, and prints a note that the secret is missing', async () => {
    const { printed } = await start('--client-secret', `it's "$5"`, '--webhook-secret', "it's");
    expect(printed.out).toContain('export PAYMENTS_WEBHOOK_SECRET="it\'s"\n');
    expect(printed.out).not.toContain('export PAYMENTS_CLIENT_SECRET=');
    expect(printed.out).toContain('\nPAYMENTS_CLIENT_SECRET is not listed, because ');
  });

  it('runCommand() prints the trigger command with --url unless the emulator listens at the default address', async () => {
    const { emulator, printed } = await start();
    expect(printed.out).toContain(`--reference order-1 --url ${emulator.baseUrl}\n`);
  });

  it('runCommand() prints one line per delivery without secrets, and no line with --quiet', async () => {
    const loud = await start('--faults', '{"delivery":{"drop":{"next":1}}}');
    loud.printed.out = '';
    for (const eventType of ['one', 'two']) loud.emulator.sendEvent({ eventType });
    await loud.emulator.idle();
    expect(loud.printed.out).toBe(
      'one  default  attempt 1  dropped  (drop)\ntwo  default  attempt 1  skipped  no_url\n',
    );
    const quiet = await start('--quiet');
    quiet.printed.out = '';
    quiet.emulator.sendEvent({ eventType: 'x.y' });
    await quiet.emulator.idle();
    expect(quiet.printed.out).toBe('');
  });

  it.each([
    [['--nope'], "Unknown option '--nope'"],
    [
      ['--port', '70000'],
      'payments-emulator: --port must be a whole number from 0 to 65535\npayments-emulator --help lists the flags.\n',
    ],
    [['--webhook-url', 'http://shop.example/'], '--webhook-url must be an https:// URL'],
    [['--token-lifetime', '0'], '--token-lifetime must be a whole number of seconds'],
    [['--faults', '{"api":{"slow":{}}}'], 'api.slow.ms is required'],
  ])('runCommand() returns 2 and prints one error message for %j', async (args, message) => {
    const { result, printed } = await run(...args);
    expect(result).toBe(2);
    expect(printed.out).toBe('');
    expect(printed.err).toContain(message);
    expect(printed.err.trim().split('\n')).toHaveLength(2);
  });

  it('runCommand() returns 1 if the production port is in use, and prints the port and its flag', async () => {
    const { emulator } = await start();
    const { port } = new URL(emulator.baseUrl);
    const { result, printed } = await run('--port', '0', '--production-port', port);
    expect(result).toBe(1);
    expect(printed.err).toMatch(
      new RegExp(`^payments-emulator: port ${port} on .* choose .* --production-port .*\n$`),
    );
  });

  it('runCommand() prints its help and its version', async () => {
    const help = await run('--help');
    expect(help.result).toBe(0);
    expect(help.printed.out).toContain('--webhook-url');
    const version = await run('--version');
    expect(version.result).toBe(0);
    expect(version.printed.out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
