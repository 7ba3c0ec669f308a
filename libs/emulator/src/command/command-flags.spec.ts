import { describe, expect, it } from '@jest/globals';
import { CommandLineError, parseCommandLine } from './command-flags.js';
import { HELP } from './command-help.js';

function optionsOf(...args: string[]) {
  const command = parseCommandLine(args);
  if (command.do !== 'start') throw new Error(`expected a start, not ${command.do}`);
  return command.options;
}

describe('parseCommandLine', () => {
  it('parseCommandLine() uses fixed ports by default', () => {
    expect(optionsOf()).toMatchObject({ port: 4010, productionPort: 4011 });
    expect(optionsOf('--port', '0', '--production-port=1')).toMatchObject({
      port: 0,
      productionPort: 1,
    });
  });

  it('parseCommandLine() parses the credentials and the webhook of the company', () => {
    const options = optionsOf(
      '--webhook-url',
      'http://localhost:3000/w',
      '--webhook-secret',
      'w',
      '--client-id',
      'i',
      '--client-secret',
      's',
    );
    expect(options).toMatchObject({
      webhookUrl: 'http://localhost:3000/w',
      webhookSecret: 'w',
      clientId: 'i',
      clientSecret: 's',
    });
  });

  it('parseCommandLine() parses a redelivery schedule with units', () => {
    expect(optionsOf('--redeliver', '500ms,1s, 5m,1h').redeliver).toEqual([
      500, 1000, 300_000, 3_600_000,
    ]);
    expect(optionsOf('--redeliver', 'none').redeliver).toEqual([]);
    expect(optionsOf().redeliver).toBeUndefined();
  });

  it('parseCommandLine() parses the currency in which the pages show amounts', () => {
    expect(optionsOf('--currency', 'EUR').currency).toBe('EUR');
    expect(optionsOf().currency).toBeUndefined();
  });

  it('parseCommandLine() parses a fault plan', () => {
    expect(optionsOf('--faults', '{"api":{"reset":{"next":1}}}').faults).toEqual({
      api: { reset: { next: 1 } },
    });
  });

  it.each([
    [['--nope'], "Unknown option '--nope'"],
    [['more'], "Unexpected argument 'more'"],
    [['--port'], '--port'],
    [['--port', 'x'], '--port takes a whole number, not "x"'],
    [['--port', '-1'], '--port'],
    [['--redeliver', '5'], '--redeliver takes a list of times such as'],
    [['--faults', '{'], '--faults takes JSON'],
  ])('parseCommandLine() rejects %j with a message that names the flag', (args, message) => {
    expect(() => parseCommandLine(args)).toThrow(CommandLineError);
    expect(() => parseCommandLine(args)).toThrow(message);
  });

  it('parseCommandLine() gives --help and --version precedence over other flags', () => {
    expect(parseCommandLine(['--help', '--port', 'x'])).toEqual({ do: 'help' });
    expect(parseCommandLine(['-v'])).toEqual({ do: 'version' });
    expect(HELP).toContain('--webhook-url');
  });
});
