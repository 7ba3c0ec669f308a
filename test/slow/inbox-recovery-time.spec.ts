import { afterEach, describe, expect, it } from '@jest/globals';
import { durablePostgres, durableSqlite } from '../support/inbox/durable-inboxes.js';
import type { DurableInbox } from '../support/inbox/durable-inboxes.js';
import { MerchantProcess } from '../support/inbox/merchant-process.js';

const running: MerchantProcess[] = [];
afterEach(() => Promise.all(running.splice(0).map((merchant) => merchant.kill())));

/** Kills a process while its handler runs. Resolves with the seconds until the handler runs again. */
async function recoverySeconds(durable: DurableInbox, by: 'survivor' | 'restart'): Promise<number> {
  const data = await durable.data();
  const start = async (): Promise<MerchantProcess> => {
    const merchant = await MerchantProcess.start(data);
    running.push(merchant);
    return merchant;
  };
  const killed = await start();
  const survivor = by === 'survivor' ? await start() : null;
  await killed.send('interrupted', 'hang');
  await killed.reported('ran interrupted 1');
  const killedAt = performance.now();
  await killed.kill();
  const other = survivor ?? (await start());
  await other.reported('ran interrupted 1');
  return (performance.now() - killedAt) / 1000;
}

describe('recovery with default options', () => {
  const sqlite = durableSqlite();
  const postgres = durablePostgres();

  it('IN-12 a handler that kill -9 interrupted runs again within 30 s with default options', async () => {
    const seconds = await Promise.all([
      recoverySeconds(postgres, 'survivor'),
      recoverySeconds(sqlite, 'survivor'),
      recoverySeconds(sqlite, 'restart'),
    ]);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(30);
    // The last heartbeat of the killed process renewed the lease of this process, so the lease cannot end earlier.
    expect(Math.min(...seconds)).toBeGreaterThan(15);
  });
});
