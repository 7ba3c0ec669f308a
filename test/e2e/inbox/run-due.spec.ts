import { describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { memoryInbox, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import { eventually } from '../../support/time/waiting.js';
import { Gate } from '../../support/time/gate.js';
import { AT_ONCE, inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import { OPTIONS } from '../../support/webhook/webhook-application.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

const FROZEN = { ...AT_ONCE, background: false };

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('AP-05 deliveries run only during runDue() if the background worker is off', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const book = ({ id }: { id: string }): void => void ran.push(id);
    await using app = await startOn(data, { book }, { worker: FROZEN });
    for (const id of ['a', 'b', 'c']) expect(await post(app, id)).toBe(200);
    // No worker may claim the deliveries. This query of the store gives a worker enough time for a claim.
    await inboxOf(app).list();
    expect(ran).toEqual([]);
    expect(await states(app, 'a')).toEqual({ book: 'pending 0' });
    expect(await inboxOf(app).runDue({ forMs: 20_000 })).toEqual({
      done: 3,
      failed: 0,
      more: false,
    });
    expect(ran.toSorted()).toEqual(['a', 'b', 'c']);
    expect(await states(app, 'a')).toEqual({ book: 'done 1' });
    expect(await inboxOf(app).runDue()).toEqual({ done: 0, failed: 0, more: false });
    expect(await post(app, 'd')).toBe(200);
    expect(ran).not.toContain('d');
    expect((await inboxOf(app).runDue()).done).toBe(1);
  });

  it('AP-05 runDue() counts failed attempts, and runs retries that become due before runDue() resolves', async () => {
    const data = await durable.data();
    let failures = 2;
    const flaky = (): void => {
      if (failures-- > 0) throw new Error('not yet');
    };
    const gate = new Gate();
    const slow = (): Promise<void> => gate.pass();
    await using app = await startOn(data, { flaky, slow }, { worker: FROZEN });
    await post(app, 'a');
    const run = inboxOf(app).runDue({ forMs: 20_000 });
    await eventually(async () => expect(await states(app, 'a')).toMatchObject({ flaky: 'done 3' }));
    gate.open();
    expect(await run).toEqual({ done: 2, failed: 2, more: false });
  });

  it('AP-05 runDue() resolves after forMs, and starts no attempt after that', async () => {
    const data = await durable.data();
    const gate = new Gate();
    const begun: string[] = [];
    const book = async ({ id }: { id: string }): Promise<void> => {
      begun.push(id);
      await gate.pass();
    };
    await using app = await startOn(data, { book }, { worker: { ...FROZEN, concurrency: 1 } });
    await post(app, 'a');
    await post(app, 'b');
    expect(await inboxOf(app).runDue({ forMs: 300 })).toEqual({ done: 0, failed: 0, more: true });
    expect(begun).toHaveLength(1);
    gate.open();
    await eventually(async () => expect(await states(app, 'a')).toEqual({ book: 'done 1' }));
    expect(await states(app, 'b')).toEqual({ book: 'pending 0' });
    expect(begun).toHaveLength(1);
    expect((await inboxOf(app).runDue()).done).toBe(1);
  });

  it('AP-05 runDue() skips paused handlers, respects "concurrency", and resolves when the application closes', async () => {
    const data = await durable.data();
    const gate = new Gate();
    let running = 0;
    let most = 0;
    const book = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      await gate.pass();
      running -= 1;
    };
    const app = await startOn(data, { book }, { worker: { ...FROZEN, concurrency: 2 } });
    const inbox = inboxOf(app);
    for (const id of ['a', 'b', 'c', 'd']) await post(app, id);
    await inbox.pause('book');
    expect(await inbox.runDue()).toEqual({ done: 0, failed: 0, more: false });
    await inbox.resume('book');
    expect(running).toBe(0);
    const run = inbox.runDue({ forMs: 60_000 });
    await gate.arrival;
    const closing = app.app.close();
    expect(await run).toMatchObject({ more: true });
    gate.open();
    await closing;
    expect(most).toBeLessThanOrEqual(2);
    await expect(inbox.runDue()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await using next = await startOn(data, { book }, { worker: FROZEN });
    await inboxOf(next).runDue();
    for (const id of ['a', 'b', 'c', 'd'])
      expect(await states(next, id)).toEqual({ book: 'done 1' });
  });
});

it('AP-05 the memory inbox handles an event before the response, even with background: false', async () => {
  const data = { inbox: () => memoryInbox() } as Parameters<typeof startOn>[0];
  const ran: string[] = [];
  const book = ({ id }: { id: string }): void => void ran.push(id);
  await using app = await startOn(data, { book }, { worker: FROZEN });
  expect(await post(app, 'a')).toBe(200);
  expect(ran).toEqual(['a']);
  expect(await inboxOf(app).runDue()).toEqual({ done: 0, failed: 0, more: false });
});

it.each([0, -1, 1.5, 900_001, NaN, '5' as never])(
  'AP-05 runDue() rejects with a TypeError if forMs is %p, and rejects with another error before app.init()',
  async (forMs) => {
    const app = await NestFactory.create(PaymentsModule.forRoot(OPTIONS), { logger: false });
    const inbox = app.get(PaymentInbox);
    await expect(inbox.runDue({ forMs })).rejects.toThrow(TypeError);
    await expect(inbox.runDue()).rejects.toThrow(/app\.init\(\)/);
    await app.close();
  },
);
