import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { exponential, fixed, none, OnPaymentEvent, UnrecoverableError } from 'nestjs-payments';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

onEachDurableInbox((durable) => {
  it('IN-15 the inbox retries only the failed one of three handlers', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handler = (name: string, failures: number) => (): void => {
      ran.push(name);
      if (ran.filter((one) => one === name).length <= failures) throw new Error('not yet');
    };
    await using app = await startOn(data, {
      book: handler('book', 0),
      mail: handler('mail', 2),
      print: handler('print', 0),
    });
    expect(await post(app, 'paid')).toBe(200);
    const done = { book: 'done 1', mail: 'done 3', print: 'done 1' };
    await eventually(async () => expect(await states(app, 'paid')).toEqual(done));
    expect(ran.toSorted()).toEqual(['book', 'mail', 'mail', 'mail', 'print']);
  });

  it.each([
    { chance: 0, title: 'shortest' },
    { chance: 0.999, title: 'longest' },
  ])(
    'IN-18 retries follow the schedule, times 1 to 2 ($title), and the delivery is dead after the last attempt',
    async ({ chance }) => {
      const data = await durable.data();
      const retry = exponential({ attempts: 5, firstMs: 60_000, exponent: 1, maxMs: 200_000 });
      const runtime = { ...systemRuntime, random: () => chance };
      const fails = () => {
        throw new Error('not yet');
      };
      await using app = await startOn(data, { book: fails }, { worker: { retry }, runtime });
      const [id, inbox] = ['paid', inboxOf(app)];
      let before = Date.now();
      await post(app, id);
      for (const [index, bound] of [60_000, 120_000, 180_000, 200_000].entries()) {
        await eventually(async () =>
          expect(await states(app, id)).toEqual({ book: `pending ${index + 1}` }),
        );
        const wait = (await inbox.get(id))!.deliveries[0]!.dueAt!.getTime() - before;
        // The time that the test itself took is not part of the wait.
        expect(wait).toBeGreaterThanOrEqual(bound * (1 + chance) - 5);
        expect(wait).toBeLessThan(bound * (1 + chance) + (Date.now() - before) + 5);
        before = Date.now();
        await inbox.redrive({ ids: [id], state: 'pending' });
      }
      await eventually(async () => expect(await states(app, id)).toEqual({ book: 'dead 5' }));
      const [delivery] = (await inbox.get(id))!.deliveries;
      expect(delivery).toMatchObject({
        dueAt: null,
        lastError: expect.stringMatching(/not yet/),
        finishedAt: expect.any(Date),
      });
      expect(app.log.matching(/attempt 5 of 5\) and is dead/)).toHaveLength(1);
    },
  );

  it('IN-18 each handler has its own retry schedule', async () => {
    const data = await durable.data();
    @Injectable()
    class Handlers {
      @OnPaymentEvent('*', { name: 'once', retry: none })
      once(): void {
        throw new Error('no');
      }

      @OnPaymentEvent('*', { name: 'twice', retry: fixed([1]) })
      twice(): void {
        throw new Error('no');
      }

      @OnPaymentEvent('*', { name: 'thrice' })
      thrice(): void {
        throw new Error('no');
      }
    }
    await using app = await WebhookApplication.start({
      providers: [Handlers],
      payments: { inbox: data.inbox(), worker: { retry: fixed([1, 1]) } },
    });
    expect(await post(app, 'paid')).toBe(200);
    const dead = { once: 'dead 1', twice: 'dead 2', thrice: 'dead 3' };
    await eventually(async () => expect(await states(app, 'paid')).toEqual(dead));
  });

  it('IN-17 IN-18 an unrecoverable delivery is dead at once, and the next of its transaction runs', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handle = ({ id }: { id: string }): void => {
      ran.push(id);
      if (id === 'wrong') throw new UnrecoverableError('an unknown currency');
    };
    await using app = await startOn(data, { book: handle });
    await post(app, 'wrong', { transactionId: 'one' });
    await eventually(async () => expect(await states(app, 'wrong')).toEqual({ book: 'dead 1' }));
    await post(app, 'right', { transactionId: 'one' });
    await eventually(async () => expect(await states(app, 'right')).toEqual({ book: 'done 1' }));
    expect(ran).toEqual(['wrong', 'right']);
  });
});
