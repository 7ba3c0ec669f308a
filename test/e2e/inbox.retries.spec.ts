import { expect, it } from '@jest/globals';
import { UnrecoverableError } from 'nestjs-payments';
import { systemRuntime } from '../../libs/payments/dist/payments.runtime.js';
import { inboxOf, post, startOn, states } from '../support/inbox.application.js';
import { onEachDurableInbox } from '../support/inbox.stages.js';
import { eventually } from '../support/eventually.js';

onEachDurableInbox((stage) => {
  it('15: runs only the one again that failed, of three handlers of one event', async () => {
    const data = await stage.data();
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
    { chance: 0.999, title: 'late' },
    { chance: 0.25, title: 'early' },
  ])(
    '18: waits between 0 and a bound that doubles up to its maximum, drawn by chance ($title)',
    async ({ chance }) => {
      const data = await stage.data();
      const worker = { firstRetryMs: 60_000, maxRetryMs: 200_000, maxAttempts: 5 };
      const runtime = { ...systemRuntime, random: () => chance };
      const fails = () => {
        throw new Error('not yet');
      };
      await using app = await startOn(data, { book: fails }, { worker, runtime });
      const [id, inbox] = ['paid', inboxOf(app)];
      let before = Date.now();
      await post(app, id);
      for (const [index, bound] of [60_000, 120_000, 200_000, 200_000].entries()) {
        await eventually(async () =>
          expect(await states(app, id)).toEqual({ book: `pending ${index + 1}` }),
        );
        const wait = (await inbox.get(id))!.deliveries[0]!.dueAt!.getTime() - before;
        // What passed since is the machine's, and no part of the wait.
        expect(wait).toBeGreaterThanOrEqual(bound * chance - 5);
        expect(wait).toBeLessThan(bound * chance + (Date.now() - before) + 5);
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

  it('17, 18: puts an unrecoverable one to the dead letters at once, and runs the next of its transaction', async () => {
    const data = await stage.data();
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
