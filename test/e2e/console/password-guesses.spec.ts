import { expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { basic, consoleOnEachAdapter, guarded } from '../../support/console/console-application.js';
import type { ConsoleSetup } from '../../support/console/console-application.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { until } from '../../support/time/waiting.js';

const PASSWORD = 'correct horse battery';

const from = (address: string) => ({ 'x-forwarded-for': address });

/** The log has a timer to report suppressed warnings. */
const LOG_TIMERS = 1;

consoleOnEachAdapter((start, name) => {
  /** An application that trusts every proxy, so that each client can choose its own address. */
  const trusting = (): ConsoleSetup =>
    name === 'fastify'
      ? { adapter: new FastifyAdapter({ trustProxy: true }) }
      : { main: (app) => void (app as NestExpressApplication).set('trust proxy', true) };

  it('SE-13 the console delays checks of a name after ten wrong passwords, except for an operator who has signed in', async () => {
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

  it('SE-13 the console lets 6 attempts of a name through a network with ten wrong passwords wait, and prefers clients without wrong passwords', async () => {
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
  ])('SE-13 the console limits guesses that forge %s in X-Forwarded-For', async (_, forged) => {
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
  });

  it('the console uses the address of the connection for a client whose forwarded address is not an IP address', async () => {
    const runtime = new FakeRuntime();
    const users = { ann: PASSWORD };
    await using app = await start({ ...trusting(), console: guarded({ users, runtime }) });
    await app.get('', { ...basic('ann', PASSWORD), ...from('unknown') });
    for (let n = 0; n < 12; n += 1) {
      const guess = app.get('', { ...basic('ann', 'wrong'), ...from(`203.0.113.${n}`) });
      if (n >= 10) await until(() => runtime.pending === LOG_TIMERS + n - 9);
      else await guess;
    }
    // Both requests come from this machine, which has signed in.
    for (const address of ['somebody', '127.0.0.1']) {
      expect(await app.get('', { ...basic('ann', PASSWORD), ...from(address) })).toMatchObject({
        status: 200,
      });
    }
    runtime.advance(3000);
  });

  it('the console lets a page load its files in parallel while passwords are checked asynchronously', async () => {
    const verify = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return true;
    };
    await using app = await start({ console: guarded({ verify, runtime: new FakeRuntime() }) });
    await app.get('', basic('a', 'b'));
    const files = Array.from({ length: 30 }, () => app.get('/assets/console.js', basic('a', 'b')));
    for (const { status } of await Promise.all(files)) expect(status).toBe(200);
  });
});
