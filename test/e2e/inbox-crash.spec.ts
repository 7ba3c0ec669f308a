import { afterEach, expect, it } from '@jest/globals';
import { fixed } from 'nestjs-payments';
import { MerchantProcess } from '../support/inbox/merchant-process.js';
import { onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import type { InboxData } from '../support/inbox/durable-inboxes.js';
import { WebhookApplication } from '../support/webhook/webhook-application.js';
import { stored } from '../support/webhook/handler-application.js';
import { eventually } from '../support/time/waiting.js';

const ROUNDS = 50;
/** The shortest lease, so that what died is soon freed. */
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

/** Posts eight events at a time until the process is killed: after so many answers, in the middle of the rest. */
async function killAfter(merchant: MerchantProcess, answers: number): Promise<string[]> {
  const acknowledged: string[] = [];
  const lane = async (): Promise<void> => {
    for (;;) {
      const id = crypto.randomUUID();
      const status = await merchant.send(id, 'book').catch(() => null);
      if (status === null) return;
      expect(status).toBe(200);
      acknowledged.push(id);
      if (acknowledged.length === answers) void merchant.kill();
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  await merchant.gone;
  return acknowledged;
}

/** The event as the inbox has it, read by an application without handlers next to the processes. */
async function readBack(data: InboxData, id: string) {
  await using app = await WebhookApplication.start({ payments: { inbox: data.inbox() } });
  return stored(app, id);
}

onEachDurableInbox((stage) => {
  it(`IN-09 has every event it acknowledged after ${ROUNDS} rounds of kill -9, and every effect once`, async () => {
    const data = await stage.data();
    const acknowledged: string[] = [];
    // Two at a time on one database: each is killed while the other works. The next boots meanwhile.
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
    // Those that ran in two processes that were killed run alone now, at most one per second.
    await eventually(async () => {
      const effects = new Set(await data.effects());
      expect(acknowledged.filter((id) => !effects.has(id))).toEqual([]);
    }, 90_000);
    const effects = await data.effects();
    expect(effects).toHaveLength(new Set(effects).size);
  }, 600_000);

  it('IN-10 runs an event after a restart that was stored and not run before kill -9', async () => {
    const data = await stage.data();
    // Another event is on its one place, so what is stored waits.
    const first = await start(data, { worker: { ...LEASES, concurrency: 1 } });
    await first.send('busy', 'hang');
    await first.told('ran busy 1');
    expect(await first.send('waiting', 'book')).toBe(200);
    await first.kill();
    expect(first.lines.filter((line) => line.includes('waiting'))).toEqual([]);
    const second = await start(data, { worker: LEASES });
    await second.told('ended waiting');
    expect(second.lines).toContain('ran waiting 1');
    expect(await data.effects()).toEqual(['waiting']);
  }, 60_000);

  it('IN-12 runs a delivery again whose process died, records the attempt as lost, and does not charge it', async () => {
    const data = await stage.data();
    const first = await start(data, { worker: LEASES });
    await first.send('held', 'book when told');
    await first.told('ran held 1');
    const second = await start(data, { worker: LEASES });
    await first.kill();
    second.tell();
    await second.told('ended held');
    expect(second.lines).toContain('ran held 1');
    expect(await data.effects()).toEqual(['held']);
    const [delivery] = (await readBack(data, 'held')).deliveries;
    expect(delivery).toMatchObject({ state: 'done', attempts: 1 });
    expect(delivery!.history.map(({ outcome }) => outcome)).toEqual(['lost', 'done']);
  }, 60_000);

  it('IN-19 lets an event that kills its process each time reach dead, and completes ten innocent events without a charge', async () => {
    const data = await stage.data();
    const worker = { ...LEASES, retry: fixed([1, 1]) };
    const innocents = Array.from({ length: 10 }, (_, index) => `innocent ${index}`);
    // All of them run when the process dies. Later they take 0.6 of the lease, as 6 s of the default one.
    const first = await start(data, { worker, slowMs: 60_000 });
    const send = (id: string) => first.send(id, 'book slowly', { ms: 0.6 * LEASES.leaseMs });
    await Promise.all(innocents.slice(0, 5).map(send));
    await first.send('poison', 'die when told');
    await Promise.all(innocents.slice(5).map(send));
    await Promise.all([...innocents, 'poison'].map((id) => first.told(`ran ${id} 1`)));
    first.tell();
    await first.gone;
    let deaths = 1;
    for (; deaths < 10; deaths += 1) {
      const merchant = await start(data, { worker });
      merchant.tell();
      const dead = merchant.until(() => /of event poison .* is dead/.test(merchant.log));
      if (await dead.then(() => true).catch(() => false)) break;
    }
    // With the others, next to others, and three times alone, each of which is charged.
    expect(deaths).toBe(5);
    await eventually(async () => expect(await data.effects()).toEqual(innocents));
    const [poison] = (await readBack(data, 'poison')).deliveries;
    expect(poison).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(/last of 3 attempts ended without a result/),
    });
    const outcomes = poison!.history.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['lost', 'lost', 'lost', 'lost', 'lost', 'failed']);
    for (const id of innocents) {
      const [delivery] = (await readBack(data, id)).deliveries;
      expect(delivery).toMatchObject({ state: 'done', attempts: 1 });
    }
  }, 120_000);

  it('IN-22 has the effect once if the process died right after its commit', async () => {
    const data = await stage.data();
    const first = await start(data, { worker: LEASES });
    await first.send('paid', 'book and die');
    await first.gone;
    expect(await data.effects()).toEqual(['paid']);
    const second = await start(data, { worker: LEASES });
    await second.send('later', 'book');
    await second.told('ended later');
    expect(second.lines.filter((line) => line.includes('paid'))).toEqual([]);
    expect(await data.effects()).toEqual(['later', 'paid']);
    expect((await readBack(data, 'paid')).deliveries).toMatchObject([
      { state: 'done', attempts: 1 },
    ]);
  }, 60_000);
});
