import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../support/eventually.js';
import { startPostgres } from '../support/postgres.server.js';
import type { PostgresServer } from '../support/postgres.server.js';
import { settingsFor, Shop } from '../support/shop.client.js';
import { ShopEvents } from '../support/shop.events.js';

jest.setTimeout(90_000);

/** A place to book in that outlives the shops. */
interface Place {
  settings(): Promise<Record<string, string>>;
  remove(): Promise<void>;
}

const sqlite = (): Place => {
  const folder = mkdtempSync(join(tmpdir(), 'shop-durable-'));
  return {
    settings: async () => ({ SHOP_DATA: join(folder, randomUUID(), 'made-by-the-shop') }),
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
    // For almost a minute: a shop that was killed may take its time to start on a busy machine.
    const redeliver = [...Array<number>(10).fill(500), ...Array<number>(10).fill(5000)];
    emulator = await PaymentsEmulator.start({ redeliver });
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

  it('has booked exactly what was paid after three kill -9 in the middle of its bookings', async () => {
    const paid: string[] = [];
    let shop = await start();
    try {
      for (const round of [1, 2, 3]) {
        // So that there is a middle.
        emulator.setFaults({ api: { slow: { ms: 400 } }, delivery: { duplicate: {} } });
        for (let at = 0; at < 6; at += 1) {
          const externalReference = `crash-${round}-${at}`;
          await shop.place(externalReference, 10);
          const { transactionId } = emulator.createStkPush({ amount: 10, externalReference });
          emulator.complete(transactionId);
          paid.push(transactionId);
        }
        await eventually(async () => {
          expect((await shop.deliveries())['running']).toBeGreaterThan(0);
        });
        expect(await shop.process.kill('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
        shop = await start();
      }
      emulator.setFaults({});
      await emulator.idle();
      await eventually(async () => {
        const { pending = 0, running = 0 } = await shop.deliveries();
        expect(pending + running).toBe(0);
      }, 30_000);
      const ledger = (await shop.ledger()).filter(({ reference }) =>
        reference!.startsWith('crash'),
      );
      expect(ledger.map(({ transactionId }) => transactionId).toSorted()).toEqual(paid.toSorted());
      expect(ledger.filter(({ unmatched }) => unmatched)).toEqual([]);
      expect((await shop.order('crash-3-5')).status).toBe('paid');
    } finally {
      await shop[Symbol.asyncDispose]();
    }
  });

  it('tells a page at one of two shops what the other has booked, and shows both the same ledger', async () => {
    const fresh = { ...settings, ...(await place.settings()) };
    await using one = await Shop.start(fresh);
    await using other = await Shop.start(fresh);
    await one.place('watched', 0.3);
    await using order = await ShopEvents.open(`${one.url}/orders/watched/events`);
    await using ledger = await ShopEvents.open(`${one.url}/books/events`);
    expect(await order.next()).toMatchObject({ status: 'pending' });
    const none = { payments: 0, amount: 0, unmatched: { payments: 0, amount: 0 } };
    expect(await ledger.next()).toEqual(none);
    // The first stands still meanwhile, so that it is the other that books.
    emulator.setWebhook({ url: other.webhookUrl });
    one.process.stop();
    for (const [externalReference, amount, booked] of [
      ['watched', 0.1, [0.1]],
      ['watched', 0.2, [0.1, 0.2]],
      ['unasked', 1.5, [1.5]],
    ] as const) {
      emulator.complete(emulator.createStkPush({ amount, externalReference }).transactionId);
      await other.booked(externalReference, [...booked]);
    }
    one.process.proceed();
    expect(await order.next()).toMatchObject({ status: 'paid' });
    const unmatched = { payments: 1, amount: 1.5 };
    expect(await ledger.next()).toEqual({ payments: 3, amount: 1.8, unmatched });
    for (const shop of [one, other]) {
      const first = await shop.get<{ entries: { amount: number }[]; next: string }>(
        '/books/entries?limit=2',
      );
      expect(first.body.entries).toMatchObject([{ amount: 1.5, unmatched: true }, { amount: 0.2 }]);
      const rest = await shop.get(`/books/entries?limit=2&before=${first.body.next}`);
      expect(rest.body).toMatchObject({ entries: [{ amount: 0.1 }], next: null });
    }
  });

  it('makes its tables once, where three of it start at the same moment', async () => {
    const fresh = { ...settings, ...(await place.settings()) };
    const shops = await Promise.all([0, 1, 2].map(() => Shop.start(fresh)));
    try {
      await shops[0]!.place('shared', 5);
      for (const shop of shops) expect((await shop.order('shared')).amount).toBe(5);
      // The same order, at each of them at once: one invoice's address is kept, and all answer with it.
      await Promise.all(shops.map((shop) => shop.place('at-once', 5)));
      const urls = await Promise.all(
        shops.map(async (shop) => (await shop.order('at-once')).checkoutUrl),
      );
      expect(new Set(urls).size).toBe(1);
    } finally {
      await Promise.all(shops.map((shop) => shop[Symbol.asyncDispose]()));
    }
  });
});

it('books and settles in one transaction: nobody ever sees the one without the other', async () => {
  const SHOP_DATA = mkdtempSync(join(tmpdir(), 'shop-durable-'));
  await using emulator = await PaymentsEmulator.start();
  await using shop = await Shop.start({ ...settingsFor(emulator), SHOP_DATA });
  emulator.setWebhook({ url: shop.webhookUrl });
  const database = new DatabaseSync(join(SHOP_DATA, 'shop.db'), { readOnly: true });
  database.exec('PRAGMA busy_timeout = 5000');
  const look = database.prepare(`
    SELECT (SELECT count(*) FROM shop_ledger) AS booked,
           (SELECT count(*) FROM payments_inbox_delivery WHERE state = 'done') AS settled`);
  const unequal: unknown[] = [];
  const payments = 60;
  for (let at = 0; at < payments; at += 1) {
    const { transactionId } = emulator.createStkPush({ amount: 1, externalReference: `p-${at}` });
    emulator.complete(transactionId);
  }
  const end = performance.now() + 30_000;
  for (let booked = 0; booked < payments;) {
    const row = look.get()!;
    booked = Number(row['booked']);
    if (booked !== row['settled']) unequal.push({ ...row });
    if (performance.now() > end) throw new Error(`only ${booked} of ${payments} were booked`);
    await setImmediate();
  }
  database.close();
  rmSync(SHOP_DATA, { recursive: true });
  expect(unequal).toEqual([]);
});
