import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { freePort } from '../../support/processes/free-port.js';
import { SHOP_PROGRAM, RunningShop } from '../../support/shop/running-shop.js';
import { startProgram } from '../../support/processes/start-program.js';

const SECRETS = { client: 'cl1ent-s3cret-value', webhook: 'whsec-s3cret-value' };
const SETTINGS = {
  PORT: '0',
  PAYMENTS_BASE_URL: 'http://127.0.0.1:9',
  PAYMENTS_CLIENT_ID: 'merchant',
  PAYMENTS_CLIENT_SECRET: SECRETS.client,
  PAYMENTS_WEBHOOK_SECRET: SECRETS.webhook,
};

/** Starts a shop that fails to boot. Resolves with its exit code and its output. */
async function boot(settings: Record<string, string>) {
  await using process = startProgram(SHOP_PROGRAM, settings);
  const { code } = await process.ended;
  return { code, out: process.out, err: process.err };
}

describe('the shop exits at boot with code 1', () => {
  it('the shop exits at boot with code 1 if settings are missing, and prints a line for each setting', async () => {
    const { code, out, err } = await boot({ PORT: '0' });
    expect([code, out]).toEqual([1, []]);
    expect(err).toEqual([
      'shop: PAYMENTS_BASE_URL is not set. Set it to the address of the payments service, for example https://payments.example.com.',
      'shop: PAYMENTS_CLIENT_ID is not set. Set it to the client id that the payments service gave you.',
      'shop: PAYMENTS_CLIENT_SECRET is not set. Set it to the client secret that the payments service gave you.',
      'shop: PAYMENTS_WEBHOOK_SECRET is not set. Set it to the secret that signs your webhooks.',
    ]);
  });

  it.each([
    ['PAYMENTS_BASE_URL', 'http://payments.example.com', 'http:'],
    ['PAYMENTS_CLIENT_SECRET', `${SECRETS.client} `, 'white space'],
  ])(
    'the shop exits at boot with code 1 if the payments module rejects %s="%s", and prints one line',
    async (name, value, word) => {
      const { code, out, err } = await boot({ ...SETTINGS, [name]: value });
      expect([code, out]).toEqual([1, []]);
      expect(err).toEqual([expect.stringContaining(word)]);
      expect(err.join()).not.toMatch(/s3cret/);
    },
  );

  describe('if SHOP_DATA cannot be used', () => {
    const folder = mkdtempSync(join(tmpdir(), 'shop-boot-'));
    const file = join(folder, 'file');
    writeFileSync(file, '');
    writeFileSync(
      join(folder, 'shop.db'),
      'no database, but long enough to look like one'.repeat(9),
    );
    afterAll(() => rmSync(folder, { recursive: true }));

    it.each([
      ['is a file', file, 'EEXIST'],
      // Even root cannot write to this folder.
      ['is not writable', '/sys/shop-data', /EPERM|EACCES|EROFS/],
      ['has a shop.db that is not a database', folder, 'file is not a database'],
    ])('the shop prints one line and exits if SHOP_DATA %s', async (_, SHOP_DATA, reason) => {
      const { code, out, err } = await boot({ ...SETTINGS, SHOP_DATA });
      expect([code, out]).toEqual([1, []]);
      expect(err).toEqual([
        expect.stringMatching(
          /^shop: SHOP_DATA must be a folder in which the shop can write the file shop.db: /,
        ),
      ]);
      expect(err[0]).toMatch(reason);
    });
  });

  it('the shop exits at boot with code 1 if nothing listens at DATABASE_URL, and prints one line without the password', async () => {
    const port = await freePort();
    const DATABASE_URL = `postgres://shop:pa-s3cret@127.0.0.1:${port}/shop`;
    const { code, out, err } = await boot({ ...SETTINGS, DATABASE_URL });
    expect([code, out]).toEqual([1, []]);
    expect(err).toEqual([
      'shop: DATABASE_URL must be the address of a PostgreSQL database that the shop can use: ' +
        `connect ECONNREFUSED 127.0.0.1:${port}`,
    ]);
  });

  it.each(['postgres://shop:pa#s3cret@localhost/shop', 'postgres://shop:pa-s3cret@[::1/shop'])(
    'the shop exits at boot with code 1 if DATABASE_URL is malformed, and prints one line without the password',
    async (DATABASE_URL) => {
      const { code, err } = await boot({ ...SETTINGS, DATABASE_URL });
      expect(code).toBe(1);
      expect(err).toEqual([expect.stringMatching(/^shop: DATABASE_URL must /)]);
      expect(err.join()).not.toMatch(/s3cret/);
    },
  );

  it.each(['express', 'fastify'])(
    'the shop exits at boot with code 1 if the port is in use, and prints one line (%s)',
    async (adapter) => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const PORT = String((other.address() as AddressInfo).port);
      const { code, err } = await boot({ ...SETTINGS, PORT, SHOP_ADAPTER: adapter });
      other.close();
      expect(code).toBe(1);
      expect(err).toEqual([
        `shop: port ${PORT} is in use. Stop the process that listens on it, or set PORT (0 takes a free port)`,
      ]);
    },
  );
});

it.each([
  ['express', 'SIGINT'],
  ['fastify', 'SIGTERM'],
] as const)(
  'the shop on %s logs its address once and no secret, and exits with code 0 on %s',
  async (adapter, signal) => {
    await using shop = await RunningShop.start({ ...SETTINGS, SHOP_ADAPTER: adapter });
    expect((await shop.get('/api/ledger')).body).toEqual([]);
    expect(await shop.process.kill(signal)).toEqual({ code: 0, signal: null });
    await expect(fetch(shop.url)).rejects.toThrow();
    const { out, err } = shop.process;
    expect(out.filter((line) => line.includes(shop.url))).toHaveLength(1);
    expect(out.length).toBeLessThan(6);
    expect([...out, ...err].join()).not.toMatch(/s3cret/);
  },
);
