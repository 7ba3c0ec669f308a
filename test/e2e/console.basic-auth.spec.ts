import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module, UseGuards } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { BasicAuthGuard } from 'nestjs-payments-console';
import type { BasicAuthOptions } from 'nestjs-payments-console';
import {
  ACTION,
  ConsoleApplication,
  consoleOnEachAdapter,
} from '../support/console.application.js';
import type { ConsoleSetup } from '../support/console.application.js';
import { FakeRuntime, until } from '../support/fake.runtime.js';
import { codeOf, errorOf } from '../support/thrown.error.js';

const PASSWORD = 'correct horse battery';
const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
});
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

const guarded = (options: BasicAuthOptions) => ({ guards: [new BasicAuthGuard(options)] });

const from = (address: string) => ({ 'x-forwarded-for': address });

consoleOnEachAdapter((start, name) => {
  /** An application that takes the word of everybody for where a request comes from. */
  const trusting = (): ConsoleSetup =>
    name === 'fastify'
      ? { adapter: new FastifyAdapter({ trustProxy: true }) }
      : { main: (app) => void (app as NestExpressApplication).set('trust proxy', true) };

  it('asks for a name and a password, and shows and logs whose they are', async () => {
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
        body: { error: 'A name and a password are needed.' },
      });
      expect(await app.get(path, basic('ann', PASSWORD))).toMatchObject({ status: 200 });
    }
    const other = basic('Bjørn', 'pässword þat is long: ü');
    expect((await app.get('/api/overview', other)).body).toMatchObject({ who: 'Bjørn' });
    // As a keyboard that puts the accent after the letter sends it.
    const apart = basic('Bjørn', 'pässword þat is long: ü'.normalize('NFD'));
    expect((await app.get('/api/overview', apart)).body).toMatchObject({ who: 'Bjørn' });
    await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...other } });
    expect(app.log.filter((line) => line.includes('"Bjørn": pause all handlers'))).toHaveLength(1);
    expect(app.log.join('\n')).not.toMatch(/correct horse|pässword/);
  });

  it.each<[string, Record<string, string>]>([
    ['a wrong password', basic('ann', `${PASSWORD}!`)],
    ['a password that is cut', basic('ann', PASSWORD.slice(0, -1))],
    ['an empty password', basic('ann', '')],
    ['a name nobody has', basic('bob', PASSWORD)],
    ['a name in other letters', basic('Ann', PASSWORD)],
    ['a name of every object', basic('constructor', PASSWORD)],
    ['no name', basic('', PASSWORD)],
    ['no colon', { authorization: `Basic ${Buffer.from('ann').toString('base64')}` }],
    ['another scheme', { authorization: `Bearer ${PASSWORD}` }],
    ['what is no base64', { authorization: 'Basic %%%' }],
    ['nothing', { authorization: 'Basic ' }],
  ])('refuses %s', async (_, headers) => {
    await using app = await start({ console: guarded({ users: { ann: PASSWORD } }) });
    expect(await app.get('/api/overview', headers)).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': CHALLENGE },
    });
  });

  it('makes a guard that extends it with what Nest injects', async () => {
    await using app = await start({ console: { guards: [OperatorsOnly], imports: [VaultModule] } });
    expect(await app.get('/api/overview')).toMatchObject({ status: 401 });
    expect((await app.get('/api/overview', basic('ops', PASSWORD))).body).toMatchObject({
      who: 'ops',
    });
  });

  it('asks a function of the application, and takes nothing but true for yes', async () => {
    const verify = async (user: string, password: string) => {
      if (user === 'down') throw new Error('ldap://10.0.0.7');
      return (user === 'odd' ? 'yes' : password === PASSWORD) as boolean;
    };
    await using app = await start({ console: guarded({ verify, realm: 'Ops' }) });
    const refused = await app.get('/api/overview', basic('odd', PASSWORD));
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringContaining('realm="Ops"') },
    });
    expect(await app.get('/api/overview', basic('ann', PASSWORD))).toMatchObject({ status: 200 });
    const down = await app.get('/api/overview', basic('down', PASSWORD));
    expect(down.status).toBe(500);
    expect(down.text).not.toContain('10.0.0.7');
  });

  it('SE-13 delays every check of a name after ten wrong passwords from any address, but not an operator who signed in before', async () => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD, bob: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    const right = basic('ann', PASSWORD);
    expect(await app.get('', { ...right, ...from('192.0.2.1') })).toMatchObject({ status: 200 });
    for (let n = 0; n < 10; n += 1) {
      const guess = { ...basic('ann', `guess number ${n}`), ...from(`203.0.113.${n}`) };
      expect(await app.get('', guess)).toMatchObject({ status: 401 });
    }
    expect(runtime.pending).toBe(0);
    const delayed = [
      app.get('', { ...basic('ann', 'the eleventh'), ...from('203.0.113.10') }),
      app.get('', { ...right, ...from('192.0.2.2') }),
    ];
    await until(() => runtime.pending === 2);
    expect(await app.get('', { ...right, ...from('192.0.2.1') })).toMatchObject({ status: 200 });
    const bob = { ...basic('bob', PASSWORD), ...from('192.0.2.1') };
    expect(await app.get('', bob)).toMatchObject({ status: 200 });
    runtime.advance(200);
    expect((await Promise.all(delayed)).map(({ status }) => status)).toEqual([401, 200]);
    const logged = app.log.filter((line) => line.includes('wrong name or password'));
    expect(logged).toEqual([expect.stringMatching(/^warn .* came from 203\.0\.113\.0\./)]);
    expect(app.log.join('\n')).not.toMatch(/guess|ann/);
  });

  it('SE-13 refuses what exceeds 60 waiting attempts of a name, in favour of networks that sent no wrong password', async () => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    const wrong = (address: string) =>
      app.get('', { ...basic('ann', 'a wrong password'), ...from(address) });
    for (let n = 0; n < 10; n += 1) await wrong('203.0.113.9');
    const flood = Array.from({ length: 60 }, () => wrong('203.0.113.9'));
    await until(() => runtime.pending === 60);
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
    expect(app.log.filter((line) => line.includes('somebody guesses'))).toHaveLength(1);
  });

  it.each<[string, (n: number) => string]>([
    ['addresses', (n) => `203.0.113.${n}`],
    ['what is no address', (n) => `somebody-${n}`],
    ['addresses with a port', (n) => `203.0.113.9:${n}`],
    ['addresses of one site', (n) => `2001:db8:7:${n}::1`],
  ])('SE-13 limits guesses that forge %s in X-Forwarded-For', async (_, forged) => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    const wrong = (n: number) => app.get('', { ...basic('ann', 'wrong'), ...from(forged(n)) });
    const statuses: number[] = [];
    const flood = Array.from({ length: 100 }, async (_each, n) => {
      statuses.push((await wrong(n)).status);
    });
    await until(() => statuses.length + runtime.pending === 100);
    runtime.advance(3000);
    await Promise.all(flood);
    const refused = statuses.filter((status) => status === 429).length;
    // Ten are checked at once, and 60 after a delay.
    expect([refused, statuses.length - refused]).toEqual([30, 70]);
  });

  it('takes the address of the connection for a client whose forwarded address is no IP address', async () => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    await app.get('', { ...basic('ann', PASSWORD), ...from('unknown') });
    for (let n = 0; n < 12; n += 1) {
      const guess = app.get('', { ...basic('ann', 'wrong'), ...from(`203.0.113.${n}`) });
      if (n >= 10) await until(() => runtime.pending === n - 9);
      else await guess;
    }
    // Both come from this machine, which has signed in.
    for (const address of ['somebody', '127.0.0.1']) {
      expect(await app.get('', { ...basic('ann', PASSWORD), ...from(address) })).toMatchObject({
        status: 200,
      });
    }
    runtime.advance(3000);
  });

  it('lets a page load its files in parallel, however long each check takes', async () => {
    const verify = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return true;
    };
    await using app = await start({ console: guarded({ verify, runtime: new FakeRuntime() }) });
    await app.get('', basic('a', 'b'));
    const files = Array.from({ length: 30 }, () => app.get('/assets/console.js', basic('a', 'b')));
    for (const { status } of await Promise.all(files)) expect(status).toBe(200);
  });

  it('guards other routes too', async () => {
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
    ['nothing', undefined, /either "users".*or "verify"/],
    ['neither', {}, /either "users".*or "verify"/],
    ['both', { users: { a: PASSWORD }, verify: () => true }, /either/],
    ['nobody', { users: {} }, /at least one name/],
    [
      'an empty password',
      { users: { ops: '' } },
      /password of "ops" must have 12 to 200 char.*set\?/,
    ],
    ['a password that is not set', { users: { ops: undefined } }, /password of "ops"/],
    ['a short password', { users: { ops: 'elevenchars' } }, /12 to 200/],
    ['a password with a line end', { users: { ops: `${PASSWORD}\n` } }, /line end/],
    ['a name with a colon', { users: { 'a:b': PASSWORD } }, /colon/],
    ['an empty name', { users: { '': PASSWORD } }, /1 to 100 characters/],
    ['verify that is no function', { verify: 'yes' }, /"verify" must be a function/],
    ['a realm with quotes', { users: { ops: PASSWORD }, realm: 'a"b' }, /"realm"/],
    ['a realm with a line end', { users: { ops: PASSWORD }, realm: 'a\r\nx: y' }, /"realm"/],
  ])('refuses %s at boot', (_, options, message) => {
    const make = () => new BasicAuthGuard(options as BasicAuthOptions);
    expect(codeOf(make)).toBe('options_invalid');
    expect(errorOf(make)!.message).toMatch(message);
    expect(errorOf(make)!.message).not.toContain('elevenchars');
  });

  it('shows no password, however it is looked at', async () => {
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
