import { expect, it } from '@jest/globals';
import { fixed } from 'nestjs-payments';
import { systemRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import {
  inboxOf,
  post,
  startHalfBroken,
  startOn,
  states,
} from '../support/inbox/inbox-application.js';
import type { Handle } from '../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import { eventually } from '../support/time/waiting.js';

onEachDurableInbox((stage) => {
  it('IN-27 pauses and resumes a handler, and all, in every application, receiving meanwhile', async () => {
    const data = await stage.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }, { handler }) => void ran.push(`${handler} ${id}`);
    await using a = await startOn(data, { book: handle, mail: handle });
    await using b = await startOn(data, { book: handle, mail: handle });
    await inboxOf(a).pause('book');
    expect((await inboxOf(b).stats()).paused).toEqual(['book']);
    for (const [index, app] of [a, b].entries()) expect(await post(app, `e${index}`)).toBe(200);
    await eventually(() => expect(ran.toSorted()).toEqual(['mail e0', 'mail e1']));
    await inboxOf(b).pause();
    expect(await post(b, 'e2')).toBe(200);
    await inboxOf(b).resume('book');
    expect((await inboxOf(a).stats()).paused).toEqual(['*']);
    expect(await states(a, 'e0')).toEqual({ book: 'pending 0', mail: 'done 1' });
    expect(await states(a, 'e2')).toEqual({ book: 'pending 0', mail: 'pending 0' });
    await inboxOf(a).resume();
    const all = ['book e0', 'book e1', 'book e2', 'mail e0', 'mail e1', 'mail e2'];
    await eventually(() => expect(ran.toSorted()).toEqual(all));
    await expect(inboxOf(a).pause('bock')).rejects.toThrow(
      new TypeError('No handler is named "bock". There are: book, mail.'),
    );
  });

  it('IN-27 wakes the workers of other applications when one resumes', async () => {
    const data = await stage.data();
    const ran: string[] = [];
    await using worker = await startOn(data, { book: ({ id }) => void ran.push(id) });
    await using operator = await startOn(data, {});
    await post(worker, 'before');
    await eventually(() => expect(ran).toEqual(['before']));
    // By the name that is stored: this application has no handlers of its own.
    await inboxOf(operator).pause('book');
    await post(worker, 'waits');
    expect(await states(worker, 'waits')).toEqual({ book: 'pending 0' });
    await inboxOf(operator).resume('book');
    await eventually(() => expect(ran).toEqual(['before', 'waits']));
  });

  it('IN-28 counts unfinished deliveries by handler and state, unhandled events, what is paused, and the age of the oldest', async () => {
    const data = await stage.data();
    const { app, state, receive, inbox } = await startHalfBroken(data);
    await using _app = app;
    const none = { count: 0, more: false };
    expect(await inbox.stats()).toEqual({
      deliveries: [],
      unhandled: none,
      stale: none,
      oldestPendingMs: null,
      paused: [],
    });
    await receive('a', 'b');
    state.broken = false;
    await receive('c');
    await inbox.pause('mail');
    await post(app, 'd');
    await eventually(async () =>
      expect(await states(app, 'd')).toEqual({ book: 'done 1', mail: 'pending 0' }),
    );
    const { deliveries, ...rest } = await inbox.stats();
    const counts = deliveries.map(({ handler, state, count }) => `${handler} ${state} ${count}`);
    expect(counts.toSorted()).toEqual(['book dead 2', 'mail pending 1']);
    expect(deliveries.every(({ more }) => !more)).toBe(true);
    expect(rest).toEqual({
      unhandled: none,
      stale: none,
      oldestPendingMs: expect.any(Number),
      paused: ['mail'],
    });
    const { receivedAt } = (await inbox.get('d'))!;
    expect(rest.oldestPendingMs).toBeGreaterThanOrEqual(0);
    expect(rest.oldestPendingMs).toBeLessThan(Date.now() - receivedAt.getTime() + 1000);
  });

  it('IN-28 counts events that no handler of any process takes', async () => {
    const data = await stage.data();
    await using app = await startOn(data, {});
    await post(app, 'a');
    expect((await inboxOf(app).stats()).unhandled).toEqual({ count: 1, more: false });
    expect(
      app.log.matching(/No handler takes the event type "transaction.completed"/),
    ).toHaveLength(1);
  });

  it('keeps deliveries of a removed handler, runs the others, reports it, and skips them after forgetHandler()', async () => {
    const data = await stage.data();
    {
      const fails = () => {
        throw new Error('not yet');
      };
      const worker = { retry: fixed([3_600_000]) };
      await using app = await startOn(data, { book: () => {}, old: fails }, { worker });
      await post(app, 'paid');
      await eventually(async () =>
        expect(await states(app, 'paid')).toEqual({ book: 'done 1', old: 'pending 1' }),
      );
      await eventually(async () => expect(await inboxOf(app).forgetHandler('old')).toBeNull());
    }
    // Two hours later.
    const runtime = { ...systemRuntime, now: () => Date.now() + 7_200_000 };
    await using app = await startOn(data, { book: () => {} }, { runtime });
    const inbox = inboxOf(app);
    await eventually(() =>
      expect(
        app.log.matching(/No process has had the handler "old" since .*; 1 deliveries wait/),
      ).toHaveLength(1),
    );
    expect((await inbox.handlers()).map(({ name, here }) => [name, here])).toEqual([
      ['book', true],
      ['old', false],
    ]);
    await inbox.redrive({ state: 'pending' });
    await post(app, 'next');
    await eventually(async () =>
      expect(await states(app, 'next')).toEqual({ book: 'done 1', old: 'pending 0' }),
    );
    expect(await states(app, 'paid')).toEqual({ book: 'done 1', old: 'pending 1' });
    expect(await inbox.forgetHandler('old')).toBe(2);
    expect((await inbox.handlers()).map(({ name }) => name)).toEqual(['book']);
    expect(await states(app, 'paid')).toEqual({ book: 'done 1', old: 'skipped 1' });
    await post(app, 'last');
    await eventually(async () => expect(await states(app, 'last')).toEqual({ book: 'done 1' }));
  });
});
