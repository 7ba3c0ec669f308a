import { afterEach, expect, it } from '@jest/globals';
import { none } from 'nestjs-payments';
import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import { MerchantProcess } from '../../support/inbox/merchant-process.js';
import { eventually } from '../../support/time/waiting.js';

const EVENTS = 40;

let merchant: MerchantProcess | undefined;
afterEach(() => merchant?.kill());

onEachDurableInbox((durable) => {
  it('OP-04 after kill -9 of the process that works on a redrive, another process continues the redrive and redrives each event once', async () => {
    const data = await durable.data();
    const ids = Array.from({ length: EVENTS }, (_one, index) => `e-${index}`);
    let broken = true;
    const ran: string[] = [];
    const worker = { retry: none, leaseMs: 1000 };
    const book = ({ id }: { id: string }): void => {
      if (broken) throw new Error('the ledger is closed');
      ran.push(id);
    };
    {
      await using app = await startOn(data, { book }, { worker });
      for (const id of ids) await post(app, id, { do: 'book' });
      await eventually(async () =>
        expect(await states(app, ids.at(-1)!)).toEqual({ book: 'dead 1' }),
      );
      broken = false;
      merchant = await MerchantProcess.start(data, { worker });
      // The other process takes the redrive when this application closes.
      await inboxOf(app).startRedrive({}, { ratePerSecond: 10, startedBy: 'ann' });
    }
    await eventually(async () => expect((await data.effects()).length).toBeGreaterThan(4));
    await merchant.kill();
    const effects = await data.effects();
    expect(effects.length).toBeLessThan(EVENTS);
    await using app = await startOn(data, { book }, { worker });
    const job = async () => (await inboxOf(app).redriveJobs())[0];
    expect(await job()).toMatchObject({ state: 'running', startedBy: 'ann' });
    await eventually(async () => expect(await job()).toMatchObject({ state: 'done' }));
    for (const id of ids) {
      await eventually(async () => expect(await states(app, id)).toEqual({ book: 'done 1' }));
    }
    expect([...ran, ...effects].toSorted()).toEqual(ids.toSorted());
  });

  it.each([-600_000, 600_000])(
    'OP-04 a redrive takes its start time from the store, and not from a process whose clock is wrong by %i ms',
    async (ms) => {
      const ran: string[] = [];
      const runtime = { ...systemRuntime, now: () => Date.now() + ms };
      const book = ({ id }: { id: string }): void => void ran.push(id);
      await using app = await startOn(await durable.data(), { book }, { runtime });
      await post(app, 'e-1', { do: 'book' });
      await eventually(async () => expect(await states(app, 'e-1')).toEqual({ book: 'done 1' }));
      const { id, startedAt } = await inboxOf(app).startRedrive({ force: true });
      const { receivedAt } = (await inboxOf(app).get('e-1'))!;
      expect(+startedAt).toBeGreaterThanOrEqual(+receivedAt);
      expect(+startedAt - +receivedAt).toBeLessThan(300_000);
      await eventually(() => expect(ran).toEqual(['e-1', 'e-1']));
      expect(await inboxOf(app).stopRedrive(id)).toBe(true);
    },
  );
});
