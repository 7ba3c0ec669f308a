import { afterEach, expect, it } from '@jest/globals';
import { MerchantProcess } from '../support/inbox.process.js';
import { onEachDurableInbox } from '../support/inbox.stages.js';
import type { InboxData } from '../support/inbox.stages.js';
import { WebhookApplication } from '../support/webhook.application.js';
import { stored } from '../support/handler.application.js';
import { eventually } from '../support/eventually.js';

const ROUNDS = 50;
/** The shortest there are, so that what died is soon taken over. */
const LEASES = { leaseMs: 1000, firstRetryMs: 1, maxRetryMs: 1 };

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

/** Posts without end, eight at a time, until the process is killed: after so many answers, in the middle of the rest. */
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

/** What the inbox says of an event, read beside the processes by an application without handlers. */
async function readBack(data: InboxData, id: string) {
  await using app = await WebhookApplication.start({ payments: { inbox: data.inbox() } });
  return stored(app, id);
}

onEachDurableInbox((stage) => {
  it(`9: has every event it acknowledged after ${ROUNDS} rounds of kill -9, and every effect once`, async () => {
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
    await eventually(async () => {
      const effects = new Set(await data.effects());
      expect(acknowledged.filter((id) => !effects.has(id))).toEqual([]);
    });
    const effects = await data.effects();
    expect(effects).toHaveLength(new Set(effects).size);
  }, 600_000);

  it('10: runs an event after a restart that was stored and not run before kill -9', async () => {
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

  it('12: takes over what a process died of or with, and counts the attempt', async () => {
    const data = await stage.data();
    const first = await start(data, { worker: LEASES });
    await first.send('held', 'book when told');
    await first.told('ran held 1');
    const second = await start(data, { worker: LEASES });
    await first.kill();
    second.tell();
    await second.told('ended held');
    expect(second.lines).toContain('ran held 2');
    expect(await data.effects()).toEqual(['held']);
  }, 60_000);

  it('19: lets an event that kills its process each time reach dead, and its neighbours go on', async () => {
    const data = await stage.data();
    const worker = { ...LEASES, maxAttempts: 3 };
    const neighbours = Array.from({ length: 8 }, (_, index) => `neighbour ${index}`);
    // While its one place is taken, they all become due: the next process claims them together.
    const first = await start(data, { worker: { ...worker, concurrency: 1 } });
    await first.send('busy', 'hang');
    await first.told('ran busy 1');
    // Among them, so that some are begun before it and some after it.
    for (const id of neighbours.slice(0, 4)) await first.send(id, 'book slowly');
    await first.send('poison', 'die later');
    for (const id of neighbours.slice(4)) await first.send(id, 'book slowly');
    await first.kill();
    let deaths = 0;
    for (; deaths < 10; deaths += 1) {
      const merchant = await start(data, { worker });
      const died = merchant.gone.then(() => true);
      const dead = merchant
        .until(() => /of event poison .* is dead/.test(merchant.log))
        .then(() => false)
        .catch(() => true);
      if (!(await Promise.race([died, dead]))) break;
    }
    expect(deaths).toBe(3);
    await eventually(async () => expect(await data.effects()).toEqual(neighbours));
    const [delivery] = (await readBack(data, 'poison')).deliveries;
    expect(delivery).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(/last of 3 attempts ended without a result/),
    });
  }, 120_000);

  it('22: has the effect once where the process died right after its commit', async () => {
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
