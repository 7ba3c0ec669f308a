import { setTimeout } from 'node:timers/promises';
import type { PostgresServer } from 'test-postgres';
import type { ShopFleet } from '../shop.fleet.js';
import type { SeededRandom } from './seeded.random.js';

/** How long a shop may take to come back, in milliseconds: its database may be down just then. */
const COME_BACK_MS = 60_000;

/** Kills shops, and at times the database's server, until `signal` aborts; then all of them run again. */
export async function wreak(
  shops: ShopFleet,
  server: PostgresServer | null,
  random: SeededRandom,
  signal: AbortSignal,
  onKill: () => void,
): Promise<void> {
  const pause = (min: number, max: number): Promise<void> =>
    setTimeout(random.between(min, max), undefined, { signal }).catch(() => {});
  /** Each comes back in its own time, while others are killed. */
  const comingBack = new Map<number, Promise<void>>();
  await pause(500, 1200);
  while (!signal.aborted) {
    if (server?.controllable && random.next() < 0.25) {
      await restart(server, random);
    } else {
      const number = random.between(0, shops.count - 1);
      await comingBack.get(number);
      onKill();
      await shops.kill(number);
      comingBack.set(
        number,
        pause(0, 600).then(() => comeBack(shops, number)),
      );
      // Handled here too, so that it is no stray while others are killed.
      comingBack.get(number)!.catch(() => {});
    }
    await pause(300, 1500);
  }
  await Promise.all(comingBack.values());
}

/** Starts a shop that is down. It ends by itself where its database is, and is started again. */
export async function comeBack(shops: ShopFleet, number: number): Promise<void> {
  const end = performance.now() + COME_BACK_MS;
  for (;;) {
    try {
      await shops.restart(number);
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await setTimeout(100);
    }
  }
}

async function restart(server: PostgresServer, random: SeededRandom): Promise<void> {
  switch (random.pick(['fast', 'immediate', 'crash'])) {
    case 'fast':
      return server.restart('fast');
    case 'immediate':
      return server.restart('immediate');
    case 'crash':
      await server.crash();
      return server.start();
  }
}
