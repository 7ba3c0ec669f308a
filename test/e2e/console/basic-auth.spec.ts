import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module, UseGuards } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { BasicAuthGuard } from 'nestjs-payments-console';
import type { BasicAuthOptions } from 'nestjs-payments-console';
import {
  ACTION,
  basic,
  guarded,
  ConsoleApplication,
  consoleOnEachAdapter,
} from '../../support/console/console-application.js';
import type { ConsoleSetup } from '../../support/console/console-application.js';
import { codeOf, errorOf } from '../../support/errors/thrown-error.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { until } from '../../support/time/waiting.js';

const PASSWORD = 'correct horse battery';
const CHALLENGE = 'Basic realm="Payments console", charset="UTF-8"';

@Injectable()
class Vault {
  readonly password = PASSWORD;
}
@Module({ providers: [Vault], exports: [Vault] })
class VaultModule {}
@Injectable()
class OperatorsOnly extends BasicAuthGuard {
  constructor(@Inject(Vault) vault: Vault) {
    super({ users: { ops: vault.password } });
  }
}

consoleOnEachAdapter((start) => {
  it('the console requires a name and a password, and shows and logs the name', async () => {
    await using app = await start({
      console: guarded({ users: { ann: PASSWORD, Bjørn: 'pässword þat is long: ü' } }),
    });
    for (const path of ['', '/', '/assets/console.js', '/api/overview']) {
      expect(await app.get(path)).toMatchObject({
        status: 401,
        headers: {
          'www-authenticate': CHALLENGE,
          'x-frame-options': 'DENY',
          'cache-control': 'no-store',
        },
        body: { error: 'A name and a password are required.' },
      });
      expect(await app.get(path, basic('ann', PASSWORD))).toMatchObject({ status: 200 });
    }
    const other = basic('Bjørn', 'pässword þat is long: ü');
    expect((await app.get('/api/overview', other)).body).toMatchObject({ who: 'Bjørn' });
    // Some keyboards send an accent as a separate character after the letter.
    const decomposed = basic('Bjørn', 'pässword þat is long: ü'.normalize('NFD'));
    expect((await app.get('/api/overview', decomposed)).body).toMatchObject({ who: 'Bjørn' });
    await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...other } });
    expect(app.log.filter((line) => line.includes('"Bjørn": paused all handlers'))).toHaveLength(1);
    expect(app.log.join('\n')).not.toMatch(/correct horse|pässword/);
  });

  it.each<[string, Record<string, string>]>([
    ['a wrong password', basic('ann', `${PASSWORD}!`)],
    ['an empty password', basic('ann', '')],
    ['an unknown name', basic('bob', PASSWORD)],
    ['a name in another case', basic('Ann', PASSWORD)],
    ['the name of a property of every object', basic('constructor', PASSWORD)],
    ['no colon', { authorization: `Basic ${Buffer.from('ann').toString('base64')}` }],
    ['another scheme', { authorization: `Bearer ${PASSWORD}` }],
    ['credentials that are not base64', { authorization: 'Basic %%%' }],
  ])('the console rejects a request with %s', async (_, headers) => {
    await using app = await start({ console: guarded({ users: { ann: PASSWORD } }) });
    expect(await app.get('/api/overview', headers)).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': CHALLENGE },
    });
  });

  it.each([
    ['an instance', guarded({ users: { ops: PASSWORD } })],
    ['a class', { guards: [OperatorsOnly], imports: [VaultModule] }],
  ])('BasicAuthGuard as %s logs how many wrong passwords it rejected', async (_, console) => {
    const app = await start({ console });
    for (let count = 0; count < 5; count += 1) await app.get('', basic('ops', 'wrong'));
    await app[Symbol.asyncDispose]();
    expect(app.log.filter((line) => line.includes('A wrong name or password'))).toEqual([
      expect.anything(),
      expect.stringContaining('(3 more since the previous line)'),
    ]);
  });

  it('the console accepts a password only if "verify" returns true', async () => {
    const verify = async (user: string, password: string) => {
      if (user === 'down') throw new Error('ldap://10.0.0.7');
      return (user === 'odd' ? 'yes' : password === PASSWORD) as boolean;
    };
    await using app = await start({ console: guarded({ verify }) });
    const refused = await app.get('/api/overview', basic('odd', PASSWORD));
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': CHALLENGE },
    });
    expect(await app.get('/api/overview', basic('ann', PASSWORD))).toMatchObject({ status: 200 });
    const down = await app.get('/api/overview', basic('down', PASSWORD));
    expect(down.status).toBe(500);
    expect(down.text).not.toContain('10.0.0.7');
  });

  it('BasicAuthGuard can guard other routes of the application', async () => {
    @Controller('metrics')
    @UseGuards(new BasicAuthGuard({ users: { ann: PASSWORD } }))
    class Metrics {
      @Get()
      all(): string {
        return 'up 1';
      }
    }
    await using app = await start({ controllers: [Metrics] });
    const ask = (headers: Record<string, string>) =>
      app.merchant.exchange('/metrics', { method: 'GET', headers });
    expect(await ask({})).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': CHALLENGE },
    });
    expect(await ask(basic('ann', PASSWORD))).toMatchObject({ status: 200, text: 'up 1' });
  });
});

describe('BasicAuthGuard', () => {
  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /either "users".*or "verify"/],
    ['both users and verify', { users: { a: PASSWORD }, verify: () => true }, /either/],
    ['no users', { users: {} }, /at least one name/],
    [
      'an empty password',
      { users: { ops: '' } },
      /password of "ops" must have 12 to 200 char.*variable is set/,
    ],
    ['a password that is not set', { users: { ops: undefined } }, /password of "ops"/],
    ['a short password', { users: { ops: 'elevenchars' } }, /12 to 200/],
    ['a password with a line break', { users: { ops: `${PASSWORD}\n` } }, /line break/],
    ['a name with a colon', { users: { 'a:b': PASSWORD } }, /colon/],
    ['an empty name', { users: { '': PASSWORD } }, /1 to 100 characters/],
    ['a user without a password', { users: { ops: null } }, /password of "ops"/],
    [
      'an unknown permission',
      { users: { ops: { password: PASSWORD, may: 'write' } } },
      /'read' or 'act'/,
    ],
    ['verify that is not a function', { verify: 'yes' }, /"verify" must be a function/],
  ])('BasicAuthGuard rejects %s at boot', (_, options, message) => {
    const make = () => new BasicAuthGuard(options as BasicAuthOptions);
    expect(codeOf(make)).toBe('options_invalid');
    expect(errorOf(make)!.message).toMatch(message);
    expect(errorOf(make)!.message).not.toContain('elevenchars');
  });

  it('BasicAuthGuard shows no password to inspect(), JSON.stringify() or the log', async () => {
    const guard = new BasicAuthGuard({ users: { ops: PASSWORD } });
    const shown = [
      inspect(guard, { depth: 9, showHidden: true }),
      JSON.stringify(guard),
      inspect([guard], { getters: true }),
      inspect(Object.getOwnPropertyDescriptors(guard)),
    ].join();
    expect(shown).not.toMatch(/correct|horse/);
    await using app = await ConsoleApplication.start({ console: { guards: [guard] } });
    await app.get('/api/overview', basic('ops', 'correct horse of another'));
    expect(app.log.join('\n')).not.toMatch(/correct|horse/);
  });
});

const from = (address: string) => ({ 'x-forwarded-for': address });

/** The log has a timer to report suppressed warnings. */
const LOG_TIMERS = 1;

consoleOnEachAdapter((start, name) => {
  /** An application that trusts every proxy, so that each client can choose its own address. */
  const trusting = (): ConsoleSetup =>
    name === 'fastify'
      ? { adapter: new FastifyAdapter({ trustProxy: true }) }
      : { main: (app) => void (app as NestExpressApplication).set('trust proxy', true) };

  it('SE-13 after ten wrong passwords for a user name, the console delays password checks for this name, except for an operator who has signed in', async () => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD, bob: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    const right = basic('ann', PASSWORD);
    expect(await app.get('', { ...right, ...from('192.0.2.1') })).toMatchObject({ status: 200 });
    for (let n = 0; n < 10; n += 1) {
      const guess = { ...basic('ann', `guess number ${n}`), ...from(`203.0.113.${n}`) };
      expect(await app.get('', guess)).toMatchObject({ status: 401 });
    }
    expect(runtime.pending).toBe(LOG_TIMERS);
    const delayed = [
      app.get('', { ...basic('ann', 'the eleventh'), ...from('203.0.113.10') }),
      app.get('', { ...right, ...from('192.0.2.2') }),
    ];
    await until(() => runtime.pending === LOG_TIMERS + 2);
    expect(await app.get('', { ...right, ...from('192.0.2.1') })).toMatchObject({ status: 200 });
    const bob = { ...basic('bob', PASSWORD), ...from('192.0.2.1') };
    expect(await app.get('', bob)).toMatchObject({ status: 200 });
    runtime.advance(200);
    expect((await Promise.all(delayed)).map(({ status }) => status)).toEqual([401, 200]);
    const logged = app.log.filter((line) => line.includes('wrong name or password'));
    expect(logged).toEqual([expect.stringMatching(/^warn .* came from 203\.0\.113\.0\./)]);
    expect(app.log.join('\n')).not.toMatch(/guess|ann/);
  });

  it('SE-13 after ten wrong passwords from a network, at most 6 of its attempts per user name wait, and clients without wrong passwords go first', async () => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    const wrong = (address: string) =>
      app.get('', { ...basic('ann', 'a wrong password'), ...from(address) });
    for (let n = 0; n < 10; n += 1) await wrong('203.0.113.9');
    const flood = Array.from({ length: 6 }, () => wrong('203.0.113.9'));
    await until(() => runtime.pending === LOG_TIMERS + 6);
    expect(await wrong('203.0.113.9')).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
      body: { error: 'Too many attempts to sign in. Try again in a second.' },
    });
    const operator = app.get('', { ...basic('ann', PASSWORD), ...from('192.0.2.1') });
    expect((await Promise.race(flood)).status).toBe(429);
    runtime.advance(3000);
    expect(await operator).toMatchObject({ status: 200 });
    const statuses = (await Promise.all(flood)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    expect(app.log.filter((line) => line.includes('somebody may be guessing'))).toHaveLength(1);
  });

  it.each<[string, (n: number) => string]>([
    ['addresses', (n) => `203.0.113.${n}`],
    ['values that are not addresses', (n) => `somebody-${n}`],
    ['addresses with a port', (n) => `203.0.113.9:${n}`],
    ['addresses of one site', (n) => `2001:db8:7:${n}::1`],
  ])(
    'SE-13 the console limits password guesses of clients that forge %s in X-Forwarded-For',
    async (_, forged) => {
      const runtime = new FakeRuntime();
      const users = { ann: PASSWORD };
      await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
      const wrong = (n: number) => app.get('', { ...basic('ann', 'wrong'), ...from(forged(n)) });
      const statuses: number[] = [];
      const flood = Array.from({ length: 100 }, async (_each, n) => {
        statuses.push((await wrong(n)).status);
      });
      await until(() => statuses.length + runtime.pending === LOG_TIMERS + 100);
      runtime.advance(3000);
      await Promise.all(flood);
      const refused = statuses.filter((status) => status === 429).length;
      // Ten attempts are checked at once, and 6 after a delay.
      expect([refused, statuses.length - refused]).toEqual([84, 16]);
    },
  );
});
