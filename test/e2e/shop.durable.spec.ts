import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { startPostgres } from '../support/postgres.server.js';
import type { PostgresServer } from '../support/postgres.server.js';
import { settingsFor, Shop } from '../support/shop.client.js';

jest.setTimeout(60_000);

/** A place to book in that outlives the shops. */
interface Place {
  settings(): Promise<Record<string, string>>;
  remove(): Promise<void>;
}

const sqlite = (): Place => {
  const folder = mkdtempSync(join(tmpdir(), 'shop-durable-'));
  return {
    settings: async () => ({ SHOP_DATA: join(folder, 'made', 'by', 'the-shop') }),
    remove: async () => rmSync(folder, { recursive: true }),
  };
};

const postgres = (): Place => {
  let server: PostgresServer | undefined;
  return {
    async settings() {
      server ??= await startPostgres();
      return { DATABASE_URL: await server.createDatabase() };
    },
    remove: async () => server?.end(),
  };
};

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('a shop on %s', (_, open) => {
  let place: Place;
  let emulator: PaymentsEmulator;
  let settings: Record<string, string>;

  beforeAll(async () => {
    place = open();
    emulator = await PaymentsEmulator.start({ redeliver: Array(20).fill(500) });
    settings = {
      ...(await place.settings()),
      ...settingsFor(emulator),
      SHOP_LEASE_MS: '1000',
    };
  });
  afterAll(async () => {
    await emulator?.close();
    await place?.remove();
  });
  afterEach(() => emulator.setFaults({}));

  async function start(): Promise<Shop> {
    const shop = await Shop.start(settings);
    emulator.setWebhook({ url: shop.webhookUrl });
    return shop;
  }

  it('has its orders and its ledger after a restart', async () => {
    await using before = await start();
    const order = await before.place('restart', 12.34);
    await before.handled(1, () =>
      emulator.complete(
        emulator.createStkPush({ amount: 12.34, externalReference: 'restart' }).transactionId,
      ),
    );
    const ledger = await before.ledger();
    await before.process.kill('SIGTERM');

    await using after = await start();
    expect(await after.order('restart')).toEqual({ ...order, status: 'paid' });
    expect(await after.ledger()).toEqual(ledger);
    expect(await after.place('restart', 12.34)).toEqual({ ...order, status: 'paid' });
  });
});
