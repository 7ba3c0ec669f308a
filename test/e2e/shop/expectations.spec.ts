import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import type { Transaction } from 'payments-emulator';
import { startPostgres } from '../../support/postgres/postgres-server.js';
import { RunningShop, settingsFor } from '../../support/shop/running-shop.js';
import { eventually } from '../../support/time/waiting.js';

/** A poll every 300 ms at first. The last of the 100 polls is due after minutes, because a busy machine is slow. */
const OFTEN = Array.from({ length: 100 }, (_, index) =>
  Math.round(300 * (index + 1) * 1.02 ** index),
).join();

const sqlite = async (ending: AsyncDisposableStack): Promise<Record<string, string>> => {
  const SHOP_DATA = mkdtempSync(join(tmpdir(), 'shop-expectations-'));
  ending.defer(() => rmSync(SHOP_DATA, { recursive: true }));
  return { SHOP_DATA };
};

const postgres = async (ending: AsyncDisposableStack): Promise<Record<string, string>> => {
  const server = await startPostgres();
  ending.defer(() => server.end());
  return { DATABASE_URL: await server.createDatabase() };
};

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('expected orders of the shop on %s', (name, open) => {
  let ending: AsyncDisposableStack;
  let emulator: PaymentsEmulator;
  let settings: Record<string, string>;
  let shop: RunningShop;

  beforeAll(async () => {
    ending = new AsyncDisposableStack();
    emulator = await PaymentsEmulator.start({ seed: 'expected' });
    ending.defer(() => emulator.close());
    settings = { ...(await open(ending)), ...settingsFor(emulator), SHOP_LEASE_MS: '1000' };
    shop = await start();
  });
  afterEach(() => emulator.setFaults({}));
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await ending?.disposeAsync();
  });

  async function start(schedule = OFTEN): Promise<RunningShop> {
    const started = await RunningShop.start({ ...settings, SHOP_POLL_SCHEDULE_MS: schedule });
    emulator.setWebhook({ url: started.webhookUrl });
    return started;
  }

  const transactionsOf = (externalReference: string): Transaction[] =>
    emulator.transactions({ externalReference });

  const reaches = (reference: string, order: object, of = shop) =>
    eventually(
      async () => expect(await of.order(reference)).toMatchObject({ reference, ...order }),
      // If the process is killed during a poll, the poll is repeated after 30 s.
      45_000,
    );

  it('EX-13 the shop books an order once without a webhook request, and shows that a poll found the payment', async () => {
    emulator.setFaults({ delivery: { off: true } });
    await shop.createOrder('silent', 40);
    emulator.complete(transactionsOf('silent')[0]!.transactionId);
    await reaches('silent', { status: 'paid', foundByPoll: true });
    expect(await shop.ledger('silent')).toMatchObject([{ amount: 40, foundByPoll: true }]);
    await shop.process.prints(/Recorded 40 for "silent" .*found by asking the service.*is paid/);
  });

  it('EX-13 the shop does not show that a poll found the payment if the webhook request arrived first', async () => {
    // The first poll is due after an hour. On a busy machine, a poll after 300 ms could find the payment first.
    await using patient = await start('3600000');
    await patient.createOrder('notified', 40);
    emulator.complete(transactionsOf('notified')[0]!.transactionId);
    await reaches('notified', { status: 'paid' }, patient);
    expect(await patient.order('notified')).not.toHaveProperty('foundByPoll');
    expect((await patient.ledger('notified'))[0]).not.toHaveProperty('foundByPoll');
    emulator.setWebhook({ url: shop.webhookUrl });
  });

  it('EX-13 the shop marks an order as declined, although the service sends no webhook request', async () => {
    await shop.createOrder('declined', 9);
    emulator.fail(transactionsOf('declined')[0]!.transactionId);
    await reaches('declined', { status: 'declined' });
    expect(await shop.createOrder('declined', 9)).toMatchObject({ status: 'declined' });
    expect(transactionsOf('declined')).toHaveLength(1);
    expect(await shop.ledger('declined')).toEqual([]);
  });

  // The tests above already run all statements that differ on PostgreSQL.
  if (name === 'SQLite') {
    it('EX-13 the shop never repeats a request that created a payment, and finds the payment by the reference', async () => {
      emulator.setFaults({
        api: { reset: { next: 1, when: 'after' } },
        delivery: { off: true },
      });
      const unknown = { status: 'pending', checkoutUrl: null };
      expect(await shop.createOrder('unheard', 9)).toMatchObject(unknown);
      expect(await shop.createOrder('unheard', 9)).toMatchObject(unknown);
      expect(transactionsOf('unheard')).toHaveLength(1);
      emulator.complete(transactionsOf('unheard')[0]!.transactionId);
      await reaches('unheard', { status: 'paid', foundByPoll: true });
      expect(await shop.ledger('unheard')).toHaveLength(1);
    });

    it('EX-13 the shop books a paid order after a restart if the shop was killed during the request for the invoice', async () => {
      emulator.setFaults({ api: { slow: { ms: 1500, next: 1 } }, delivery: { off: true } });
      const request = shop.createOrder('killed', 9).catch(() => 'no response');
      // The emulator has received the request, and delays it.
      await eventually(() => expect(emulator.faults().api?.slow?.next).toBe(0));
      await shop.process.kill('SIGKILL');
      expect(await request).toBe('no response');
      await eventually(() => expect(transactionsOf('killed')).toHaveLength(1));
      emulator.complete(transactionsOf('killed')[0]!.transactionId);
      emulator.setFaults({ delivery: { off: true } });
      shop = await start();
      await reaches('killed', { status: 'paid', foundByPoll: true });
      expect(await shop.ledger('killed')).toHaveLength(1);
      expect(transactionsOf('killed')).toHaveLength(1);
    });

    it('EX-13 the shop marks an order as overdue, not as failed, and books a payment that is reported later', async () => {
      await using hasty = await start('300');
      await hasty.createOrder('late', 9);
      await reaches('late', { status: 'overdue' }, hasty);
      emulator.complete(transactionsOf('late')[0]!.transactionId);
      await reaches('late', { status: 'paid' }, hasty);
      emulator.setWebhook({ url: shop.webhookUrl });
    });

    it('EX-13 the shop books an order only when the service returns the transaction and no longer responds with errors', async () => {
      const off = { delivery: { off: true } } as const;
      emulator.setFaults({ ...off, api: { notFound: { next: 3 } } });
      await shop.createOrder('hidden', 9);
      const { transactionId } = transactionsOf('hidden')[0]!;
      emulator.complete(transactionId);
      await eventually(() => expect(emulator.faults().api?.notFound?.next ?? 0).toBe(0), 20_000);
      emulator.setFaults({ ...off, api: { error: { next: 3 } } });
      await reaches('hidden', { status: 'paid', foundByPoll: true });
      expect(await shop.ledger('hidden')).toMatchObject([{ transactionId }]);
    });
  }
});
