import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { startPostgres } from '../support/postgres/postgres-server.js';
import type { PostgresServer } from '../support/postgres/postgres-server.js';
import { RunningShop, settingsFor } from '../support/shop/running-shop.js';

/**
 * Pauses a shop while it writes nothing. SQLite has one writer at a time, and a shop that is paused in a transaction
 * would keep the lock.
 */
async function pauseIdle(shop: RunningShop, other: RunningShop): Promise<void> {
  for (;;) {
    shop.process.signal('SIGSTOP');
    const written = other.createOrder(randomUUID(), 1).then(
      ({ reference }) => reference !== undefined,
      () => false,
    );
    if (await Promise.race([written, setTimeout(2000, false)])) return;
    shop.process.signal('SIGCONT');
    await written;
  }
}

/** Creates databases that remain after the shops have ended. */
interface Storage {
  /** The settings of a shop with a new database. */
  settings(): Promise<Record<string, string>>;
  remove(): Promise<void>;
}

const sqlite = (): Storage => {
  const folder = mkdtempSync(join(tmpdir(), 'shop-durable-'));
  return {
    settings: async () => ({ SHOP_DATA: join(folder, randomUUID(), 'new-folder') }),
    remove: async () => rmSync(folder, { recursive: true }),
  };
};

const postgres = (): Storage => {
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
  let storage: Storage;
  let emulator: PaymentsEmulator;
  let settings: Record<string, string>;

  beforeAll(async () => {
    storage = open();
    emulator = await PaymentsEmulator.start();
    settings = { ...(await storage.settings()), ...settingsFor(emulator), SHOP_LEASE_MS: '1000' };
  });
  afterAll(async () => {
    await emulator?.close();
    await storage?.remove();
  });

  async function start(): Promise<RunningShop> {
    const shop = await RunningShop.start(settings);
    emulator.setWebhook({ url: shop.webhookUrl });
    return shop;
  }

  it('the shop keeps its orders and its ledger after a restart', async () => {
    await using before = await start();
    const order = await before.createOrder('restart', 12.34);
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
    expect(await after.createOrder('restart', 12.34)).toEqual({ ...order, status: 'paid' });
  });

  it('one shop instance shows payments of another instance, and both instances show the same ledger', async () => {
    const fresh = { ...settings, ...(await storage.settings()) };
    await using one = await RunningShop.start(fresh);
    await using other = await RunningShop.start(fresh);
    await one.createOrder('watched', 0.3);
    // Pause the first instance, so that the other one records the payments.
    emulator.setWebhook({ url: other.webhookUrl });
    await pauseIdle(one, other);
    for (const [externalReference, amount, recorded] of [
      ['watched', 0.1, [0.1]],
      ['watched', 0.2, [0.1, 0.2]],
      ['unasked', 1.5, [1.5]],
    ] as const) {
      emulator.complete(emulator.createStkPush({ amount, externalReference }).transactionId);
      await other.recorded(externalReference, [...recorded]);
    }
    one.process.signal('SIGCONT');
    expect(await one.order('watched')).toMatchObject({ status: 'paid' });
    const totals = { payments: 3, amount: 1.8, unmatched: { payments: 1, amount: 1.5 } };
    for (const shop of [one, other]) {
      expect((await shop.get('/api/ledger/totals')).body).toEqual(totals);
      const first = await shop.get<{ entries: { amount: number }[]; next: string }>(
        '/api/ledger/page?limit=2',
      );
      expect(first.body.entries).toMatchObject([{ amount: 1.5, unmatched: true }, { amount: 0.2 }]);
      const rest = await shop.get(`/api/ledger/page?limit=2&before=${first.body.next}`);
      expect(rest.body).toMatchObject({ entries: [{ amount: 0.1 }], next: null });
    }
  });

  it('the shop creates its tables once if three instances start at the same time', async () => {
    const fresh = { ...settings, ...(await storage.settings()) };
    const shops = await Promise.all([0, 1, 2].map(() => RunningShop.start(fresh)));
    try {
      await shops[0]!.createOrder('shared', 5);
      for (const shop of shops) expect((await shop.order('shared')).amount).toBe(5);
      // Each instance creates the same order at the same time. One address is stored, and all return it.
      await Promise.all(shops.map((shop) => shop.createOrder('at-once', 5)));
      const urls = await Promise.all(
        shops.map(async (shop) => (await shop.order('at-once')).checkoutUrl),
      );
      expect(new Set(urls).size).toBe(1);
    } finally {
      await Promise.all(shops.map((shop) => shop[Symbol.asyncDispose]()));
    }
  });
});

it('the shop records a payment and completes its delivery in one transaction', async () => {
  const SHOP_DATA = mkdtempSync(join(tmpdir(), 'shop-durable-'));
  await using emulator = await PaymentsEmulator.start();
  await using shop = await RunningShop.start({ ...settingsFor(emulator), SHOP_DATA });
  emulator.setWebhook({ url: shop.webhookUrl });
  const database = new DatabaseSync(join(SHOP_DATA, 'shop.db'), { readOnly: true });
  database.exec('PRAGMA busy_timeout = 5000');
  const counts = database.prepare(`
    SELECT (SELECT count(*) FROM shop_ledger) AS recorded,
           (SELECT count(*) FROM payments_inbox_delivery WHERE state = 'done') AS completed`);
  const unequal: unknown[] = [];
  const payments = 20;
  for (let at = 0; at < payments; at += 1) {
    const { transactionId } = emulator.createStkPush({ amount: 1, externalReference: `p-${at}` });
    emulator.complete(transactionId);
  }
  const end = performance.now() + 30_000;
  for (let recorded = 0; recorded < payments;) {
    const row = counts.get()!;
    recorded = Number(row['recorded']);
    if (recorded !== row['completed']) unequal.push({ ...row });
    if (performance.now() > end)
      throw new Error(`only ${recorded} of ${payments} payments were recorded`);
    await setImmediate();
  }
  database.close();
  rmSync(SHOP_DATA, { recursive: true });
  expect(unequal).toEqual([]);
});
