import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../test/support/time/fake-runtime.js';
import { turns } from '../../../test/support/time/waiting.js';
import { SignInLimiter } from './sign-in-limiter.js';

/** Clients that sign in with one user name. Only the operator sends the right password. */
class Clients {
  readonly runtime = new FakeRuntime();
  readonly limiter = new SignInLimiter(this.runtime);
  checked = 0;
  rejected = 0;

  /** Sends a password. Resolves with the milliseconds until it was accepted, or with the reason why it was not. */
  async try(
    network: string | readonly [string, ...string[]],
    right = false,
    name = 'ops',
  ): Promise<number | 'wrong' | 'rejected'> {
    const begun = this.runtime.monotonic();
    const attempt = await this.limiter.admit(
      name,
      typeof network === 'string' ? [network] : network,
    );
    if (attempt === null) this.rejected += 1;
    else this.checked += 1;
    attempt?.end(right);
    if (attempt === null) return 'rejected';
    return right ? this.runtime.monotonic() - begun : 'wrong';
  }

  /** Sends `perSecond` wrong passwords, each from the next network, and calls `meanwhile` every second. */
  async attack(
    seconds: number,
    perSecond: number,
    network: (n: number) => string | readonly [string, ...string[]],
    meanwhile = (_second: number): void => undefined,
  ): Promise<void> {
    for (let n = 0; n < seconds * perSecond; n += 1) {
      if (n % perSecond === 0) meanwhile(n / perSecond);
      await turns(1);
      void this.try(network(n));
      this.runtime.advance(1000 / perSecond);
    }
  }

  /** Sends the right password once per second until it is accepted. Resolves with the milliseconds. */
  async operator(network: string | readonly [string, ...string[]]): Promise<number> {
    const begun = this.runtime.monotonic();
    while ((await this.try(network, true)) === 'rejected') {
      await new Promise<void>((resolve) => this.runtime.schedule(1000, resolve));
    }
    return this.runtime.monotonic() - begun;
  }
}

const everyTime = (n: number): string => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
const among =
  (pool: number) =>
  (n: number): string =>
    everyTime(n % pool);

describe('SignInLimiter', () => {
  it('SignInLimiter does not delay ten wrong passwords, and delays each further password 0.1 s longer than the one before, up to 3 s', async () => {
    const clients = new Clients();
    for (let n = 0; n < 10; n += 1) await clients.try(everyTime(n));
    const delays: (number | undefined)[] = [];
    for (let n = 10; n < 80; n += 1) {
      const attempt = clients.limiter.admit('ops', [everyTime(n)]);
      delays.push(clients.runtime.nextIn);
      clients.runtime.advance(clients.runtime.nextIn ?? 0);
      (await attempt)!.end(false);
    }
    expect(delays.slice(0, 4)).toEqual([100, 200, 300, 400]);
    expect(new Set(delays.slice(-5))).toEqual(new Set([3000]));
    clients.runtime.advance(4 * 60_000);
    expect(await clients.try('192.0.2.1', true)).toBe(0);
  });

  it.each([
    ['from another network each time', everyTime],
    ['from 500 networks in turn', among(500)],
  ])(
    'SE-13 SignInLimiter checks at most 1,300 passwords of a user name per minute if 60 guesses per second come %s',
    async (_, network) => {
      const clients = new Clients();
      await clients.attack(60, 60, network);
      expect(clients.checked).toBeGreaterThan(500);
      expect(clients.checked).toBeLessThanOrEqual(1300);
      const before = clients.checked;
      await clients.attack(60, 60, network);
      expect(clients.checked - before).toBeLessThanOrEqual(1200);
    },
  );

  it.each<[string, Parameters<Clients['attack']>[2]]>([
    ['from one network', among(1)],
    ['through one proxy, with another address each time', (n) => [everyTime(n), '172.16.0.1']],
    [
      'through two proxies, with another address each time',
      (n) => [everyTime(n), '198.51.100.7', '172.16.0.1'],
    ],
  ])(
    'SE-13 SignInLimiter checks at most 100 passwords of a user name in half a minute if the guesses come %s',
    async (_, network) => {
      for (const perSecond of [5, 20, 200]) {
        const clients = new Clients();
        await clients.attack(30, perSecond, network);
        expect(clients.checked).toBeGreaterThan(50);
        expect(clients.checked).toBeLessThanOrEqual(100);
      }
    },
  );

  it.each([5, 20, 200])(
    'SE-13 SignInLimiter accepts a new operator within 5 seconds if the operator retries, while %i guesses per second come through the same proxy',
    async (perSecond) => {
      const clients = new Clients();
      const waits: Promise<number>[] = [];
      const network = (n: number): [string, string] => [everyTime(n), '172.16.0.1'];
      await clients.attack(40, perSecond, network, (second) => {
        if (second >= 10 && second % 5 === 0) {
          waits.push(clients.operator([`192.0.2.${second}`, '172.16.0.1']));
        }
      });
      const attack = clients.attack(10, perSecond, network);
      expect(Math.max(...(await Promise.all(waits)))).toBeLessThanOrEqual(5000);
      expect(waits).toHaveLength(6);
      await attack;
    },
  );

  it.each<[string, number, Parameters<Clients['attack']>[2]]>([
    ['15 guesses per second come from another network each time', 15, everyTime],
    ['200 guesses per second come from 100 networks', 200, among(100)],
    [
      '200 guesses per second come through one proxy, each with another forged address',
      200,
      (n) => [everyTime(n), '198.51.100.7', '172.16.0.1'],
    ],
  ])(
    'SE-13 SignInLimiter accepts the password of a new operator within 3 seconds while %s',
    async (_, perSecond, network) => {
      const clients = new Clients();
      const waits: Promise<number>[] = [];
      await clients.attack(30, perSecond, network, (second) => {
        // From another network each time, so that no earlier sign-in is remembered.
        if (second >= 10 && second % 5 === 0) {
          waits.push(clients.operator([`192.0.2.${second}`, '172.16.0.1']));
        }
      });
      const attack = clients.attack(5, perSecond, network);
      // The clock moves in steps of the time between two guesses.
      expect(Math.max(...(await Promise.all(waits)))).toBeLessThanOrEqual(3000 + 1000 / perSecond);
      expect(waits).toHaveLength(4);
      await attack;
    },
  );

  it('SE-13 SignInLimiter never delays an operator whose network has signed in, however many wrong passwords other networks send', async () => {
    const clients = new Clients();
    expect(await clients.try('192.0.2.1', true)).toBe(0);
    const waits: Promise<number | string>[] = [];
    await clients.attack(20, 150, everyTime, () => {
      for (let file = 0; file < 5; file += 1) waits.push(clients.try('192.0.2.1', true));
    });
    expect(new Set(await Promise.all(waits))).toEqual(new Set([0]));
    // Another network has not signed in, so its attempt waits.
    void clients.limiter.admit('ops', ['192.0.2.2']);
    expect(clients.runtime.pending).toBeGreaterThan(0);
  });

  it('SignInLimiter also delays a network from which an operator has signed in, after ten wrong passwords from there in a minute', async () => {
    const clients = new Clients();
    await clients.attack(20, 10, everyTime);
    void clients.try('192.0.2.1', true);
    clients.runtime.advance(3000);
    await turns(1);
    for (let n = 0; n < 10; n += 1) expect(await clients.try('192.0.2.1')).toBe('wrong');
    const eleventh = clients.limiter.admit('ops', ['192.0.2.1']);
    expect(clients.runtime.nextIn).toBeGreaterThan(2000);
    clients.runtime.advance(6000);
    (await eleventh)?.end(undefined);
    expect(await clients.try('192.0.2.1', true)).toBe(0);
  });

  it('SignInLimiter delays a network again 12 hours after its last sign-in', async () => {
    const clients = new Clients();
    await clients.try('192.0.2.1', true);
    clients.runtime.advance(12 * 3_600_000 - 10_000);
    await clients.attack(9, 10, everyTime);
    expect(await clients.try('192.0.2.1')).toBe('wrong');
    clients.runtime.advance(1000);
    const waiting = clients.runtime.pending;
    void clients.try('192.0.2.1');
    expect(clients.runtime.pending).toBe(waiting + 1);
  });

  it('SignInLimiter remembers the user name and the network of the last 1,000 sign-ins', async () => {
    const clients = new Clients();
    for (let n = 0; n < 1001; n += 1) await clients.try(everyTime(n), true);
    for (let n = 0; n < 10; n += 1) await clients.try(`192.0.2.${n}`);
    await clients.limiter.admit('ops', [everyTime(1)]);
    expect(clients.runtime.pending).toBe(0);
    void clients.limiter.admit('ops', [everyTime(0)]);
    expect(clients.runtime.pending).toBe(1);
  });

  it('SignInLimiter counts invented user names in a fixed number of counters', async () => {
    const clients = new Clients();
    for (let n = 0; n < 12_000 && clients.runtime.pending === 0; n += 1) {
      void clients.try(everyTime(n), false, `name ${n}`);
      if (n % 50 === 0) await turns(1);
    }
    // A new user name is delayed, because other names with wrong passwords share its counter.
    expect(clients.runtime.pending).toBeGreaterThan(0);
  });

  it('SignInLimiter counts wrong passwords per network, and halves each count every five minutes', async () => {
    const clients = new Clients();
    for (let n = 0; n < 3; n += 1) await clients.try('192.0.2.1');
    for (let minutes = 0; minutes < 20; minutes += 5) {
      clients.runtime.advance(300_000);
      await clients.try('198.51.100.1', false, 'another name');
    }
    for (let n = 0; n < 10; n += 1) await clients.try(everyTime(n));
    const waiting = Array.from({ length: 60 }, () => clients.try('192.0.2.1'));
    expect(await clients.try('192.0.2.2', true)).toBe('rejected');
    clients.runtime.advance(3000);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['wrong']));
  });

  it('SignInLimiter does not count a wrong password if the check fails with an error', async () => {
    const clients = new Clients();
    for (let n = 0; n < 50; n += 1) (await clients.limiter.admit('ops', ['a']))!.end(undefined);
    expect(clients.runtime.pending).toBe(0);
  });

  it('SignInLimiter does not delay the first 50 concurrent attempts of a network that has signed in, and delays further attempts', async () => {
    const clients = new Clients();
    await clients.try('192.0.2.1', true);
    for (let n = 0; n < 50; n += 1) await clients.limiter.admit('ops', ['192.0.2.1']);
    for (let n = 0; n < 11; n += 1) void clients.limiter.admit('ops', ['192.0.2.1']);
    expect(clients.runtime.pending).toBe(1);
  });

  it('SignInLimiter treats unknown user names like existing user names', async () => {
    const flood = async (name: string): Promise<unknown> => {
      const clients = new Clients();
      await clients.try('192.0.2.9', true, 'ops');
      const delays: (number | undefined)[] = [];
      for (let n = 0; n < 200; n += 1) {
        void clients.try('10.0.0.1', false, name);
        delays.push(clients.runtime.pending);
        clients.runtime.advance(10);
        await turns(1);
      }
      const { checked, rejected } = clients;
      return { delays, checked, rejected };
    };
    const real = await flood('ops');
    expect({ ...(real as object), checked: 1 }).not.toEqual(real);
    expect(await flood('nobody')).toEqual(real);
  });

  it('SignInLimiter lets at most 240 attempts wait, and accepts a new operator after many wrong passwords for ten user names', async () => {
    const clients = new Clients();
    let most = 0;
    for (let n = 0; n < 2_000; n += 1) {
      void clients.try(everyTime(n), false, `name ${n % 10}`);
      clients.runtime.advance(2);
      if (n % 10 === 0) await turns(1);
      most = Math.max(most, clients.runtime.pending);
    }
    expect(most).toBe(240);
    const operator = clients.operator('192.0.2.1');
    for (let n = 0; n < 100; n += 1) {
      clients.runtime.advance(50);
      await turns(2);
    }
    expect(await operator).toBeLessThanOrEqual(4000);
  });
});
