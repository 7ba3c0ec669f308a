import { afterEach, expect, it } from '@jest/globals';
import { fixed } from 'nestjs-payments';
import { MerchantProcess } from '../support/inbox/merchant-process.js';
import { onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import type { InboxData } from '../support/inbox/durable-inboxes.js';
import { WebhookApplication } from '../support/webhook/webhook-application.js';
import { stored } from '../support/webhook/handler-application.js';
import { eventually } from '../support/time/waiting.js';

const ROUNDS = 10;
/** The shortest lease, so that deliveries of dead processes are freed soon. */
const LEASES = { leaseMs: 1000, retry: fixed(Array<number>(15).fill(1)) };

let running: MerchantProcess[] = [];
afterEach(async () => {
  await Promise.all(running.map((merchant) => merchant.kill()));
  running = [];
});

async function start(
  ...setup: ConstructorParameters<typeof MerchantProcess>
): Promise<MerchantProcess> {
  const merchant = await MerchantProcess.start(...setup);
  running.push(merchant);
  return merchant;
}

/** Posts eight events at a time. Kills the process after `responses` responses, while other requests are under way. */
async function killAfter(merchant: MerchantProcess, responses: number): Promise<string[]> {
  const acknowledged: string[] = [];
  const lane = async (): Promise<void> => {
    for (;;) {
      const id = crypto.randomUUID();
      const status = await merchant.send(id, 'book').catch(() => null);
      if (status === null) return;
      expect(status).toBe(200);
      acknowledged.push(id);
      if (acknowledged.length === responses) void merchant.kill();
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  await merchant.ended;
  return acknowledged;
}

/** Reads the event through another application, which has no handlers. */
async function readBack(data: InboxData, id: string) {
  await using app = await WebhookApplication.start({ payments: { inbox: data.inbox() } });
  return await stored(app, id);
}

onEachDurableInbox((durable) => {
  it(`IN-09 after ${ROUNDS} rounds of kill -9, every acknowledged event is stored and has its effect once`, async () => {
    const data = await durable.data();
    const acknowledged: string[] = [];
    // Two processes share the database. Each is killed while the other works and the next process boots.
    const lane = async (offset: number): Promise<void> => {
      let next = start(data, { worker: LEASES });
      for (let round = offset; round < ROUNDS; round += 2) {
        const merchant = await next;
        if (round + 2 < ROUNDS) next = start(data, { worker: LEASES });
        acknowledged.push(...(await killAfter(merchant, 1 + ((round * 7) % 30))));
      }
    };
    await Promise.all([lane(0), lane(1)]);
    expect(acknowledged.length).toBeGreaterThan(ROUNDS * 8);
    await start(data, { worker: LEASES });
    await eventually(async () => {
      const effects = new Set(await data.effects());
      expect(acknowledged.filter((id) => !effects.has(id))).toEqual([]);
    }, 30_000);
    const effects = await data.effects();
    expect(effects).toHaveLength(new Set(effects).size);
  });

  // The contract of the stores proves the rest on each store.
  if (durable.kind === 'sqlite') return;

  it('IN-10 an event that was stored but not run before kill -9 runs after a restart', async () => {
    const data = await durable.data();
    // The event "busy" occupies the only slot, so the event "waiting" is stored and does not run.
    const first = await start(data, { worker: { ...LEASES, concurrency: 1 } });
    await first.send('busy', 'hang');
    await first.reported('ran busy 1');
    expect(await first.send('waiting', 'book')).toBe(200);
    await first.kill();
    expect(first.lines.filter((line) => line.includes('waiting'))).toEqual([]);
    const second = await start(data, { worker: LEASES });
    await second.reported('ended waiting');
    expect(second.lines).toContain('ran waiting 1');
    expect(await data.effects()).toEqual(['waiting']);
  });

  it('IN-19 an event that kills its process each time becomes dead, and ten other events are done and lose no attempt', async () => {
    const data = await durable.data();
    const worker = { ...LEASES, retry: fixed([1, 1]) };
    const innocents = Array.from({ length: 10 }, (_, index) => `innocent ${index}`);
    // The handlers of all eleven events run when the process dies. Later attempts of the ten innocent events take 0.6 of
    // the lease.
    const first = await start(data, { worker, slowMs: 60_000 });
    const send = (id: string) => first.send(id, 'book slowly', { ms: 0.6 * LEASES.leaseMs });
    await Promise.all(innocents.slice(0, 5).map(send));
    await first.send('poison', 'die on continue');
    await Promise.all(innocents.slice(5).map(send));
    await Promise.all([...innocents, 'poison'].map((id) => first.reported(`ran ${id} 1`)));
    first.continueHandlers();
    await first.ended;
    let deaths = 1;
    for (; deaths < 10; deaths += 1) {
      const merchant = await start(data, { worker });
      merchant.continueHandlers();
      const dead = merchant.until(() => /of event poison .* is dead/.test(merchant.output));
      if (await dead.then(() => true).catch(() => false)) break;
    }
    // The event killed its process once while all other events ran, and three times while it was the only suspect that
    // ran. Only the last three attempts are counted.
    expect(deaths).toBe(4);
    await eventually(async () => expect(await data.effects()).toEqual(innocents));
    const [poison] = (await readBack(data, 'poison')).deliveries;
    expect(poison).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(/last of 3 attempts ended without a result/),
    });
    const outcomes = poison!.history.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['lost', 'lost', 'lost', 'lost', 'failed']);
    for (const id of innocents) {
      const [delivery] = (await readBack(data, id)).deliveries;
      expect(delivery).toMatchObject({ state: 'done', attempts: 1 });
    }
  }, 120_000);

  it('IN-22 the effect of a commit exists once if the process dies right after the commit', async () => {
    const data = await durable.data();
    const first = await start(data, { worker: LEASES });
    await first.send('paid', 'book and die');
    await first.ended;
    expect(await data.effects()).toEqual(['paid']);
    const second = await start(data, { worker: LEASES });
    await second.send('later', 'book');
    await second.reported('ended later');
    expect(second.lines.filter((line) => line.includes('paid'))).toEqual([]);
    expect(await data.effects()).toEqual(['later', 'paid']);
    expect((await readBack(data, 'paid')).deliveries).toMatchObject([
      { state: 'done', attempts: 1 },
    ]);
  });
});
