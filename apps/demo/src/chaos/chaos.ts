import { setTimeout } from 'node:timers/promises';
import { PaymentsEmulator } from 'payments-emulator';
import type { Place } from '../place.js';
import { ShopClient } from '../shop.client.js';
import { ShopFleet } from '../shop.fleet.js';
import { comeBack, wreak } from './havoc.js';
import { SeededRandom } from './seeded.random.js';
import { tally } from './tally.js';
import type { Tally } from './tally.js';
import { payOn, TROUBLE } from './traffic.js';

/** For the last deliveries to be handled: those of a shop that died last wait for its lease and one another. */
const SETTLE_MS = 60_000;

/** What a run is given. */
export interface ChaosOptions {
  /** Fixes what is done and when. What comes of it depends on the machine, too. */
  readonly seed: string;
  /** How long payments are made and shops are killed. */
  readonly seconds: number;
  /** The shop's main file. */
  readonly shop: string;
  readonly place: Place;
  /** Breaks it off. */
  readonly signal: AbortSignal;
}

/**
 * A run: payments come in, told of twice, late and out of order, while shops are killed and started again. Ends by
 * itself, `SETTLE_MS` after its time at the latest, and leaves nothing running.
 */
export async function runChaos(options: ChaosOptions): Promise<Tally> {
  const { place, seed, signal } = options;
  const acknowledged = new Map<string, number>();
  const kills: number[] = [];
  const falls: string[] = [];
  await using emulator = await PaymentsEmulator.start({
    seed,
    faults: TROUBLE,
    deliveryTimeout: 5000,
    onDelivery({ transactionId, state }) {
      if (transactionId === undefined || state !== 'delivered') return;
      if (!acknowledged.has(transactionId)) acknowledged.set(transactionId, Date.now());
    },
  });
  await using shops: ShopFleet = await ShopFleet.start({
    file: options.shop,
    settings: {
      PAYMENTS_BASE_URL: emulator.baseUrl,
      PAYMENTS_CLIENT_ID: emulator.company.clientId,
      PAYMENTS_CLIENT_SECRET: emulator.company.clientSecret,
      PAYMENTS_WEBHOOK_SECRET: emulator.company.webhookSecret,
      // As short as it may be: leases run out while a handler is merely slow, which must do no harm either.
      SHOP_LEASE_MS: '1000',
      ...place.settings,
    },
    count: place.server === null ? 2 : 3,
    signal,
    onFall(how, number) {
      falls.push(how);
      comeBack(shops, number).catch(() => {});
    },
  });
  emulator.setWebhook({ url: `${shops.url}/webhooks/payments` });
  const owner = new ShopClient(shops.url, signal);

  const time = AbortSignal.any([signal, AbortSignal.timeout(options.seconds * 1000)]);
  const [paid] = await Promise.all([
    payOn(emulator, owner, new SeededRandom(seed, 'traffic'), time),
    wreak(shops, place.server, new SeededRandom(seed, 'havoc'), time, () => kills.push(Date.now())),
  ]);
  signal.throwIfAborted();
  await settle(emulator, owner, signal);
  const [ledger, inbox] = await Promise.all([owner.ledger(), owner.inbox()]);
  return tally({ paid, acknowledged, ledger, kills, inbox, falls });
}

/** Until every event was told of and every delivery handled, or their time is up. */
async function settle(
  emulator: PaymentsEmulator,
  owner: ShopClient,
  signal: AbortSignal,
): Promise<void> {
  const end = performance.now() + SETTLE_MS;
  const timeUp = new AbortController();
  await Promise.race([
    emulator.idle(),
    setTimeout(SETTLE_MS, undefined, { signal: AbortSignal.any([signal, timeUp.signal]) }),
  ]).finally(() => timeUp.abort());
  while (performance.now() < end) {
    const { pending = 0, running = 0 } = await owner.inbox();
    if (pending + running === 0) return;
    await setTimeout(50, undefined, { signal });
  }
}
