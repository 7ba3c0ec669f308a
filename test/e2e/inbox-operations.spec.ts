import { expect, it } from '@jest/globals';
import { fixed, none } from 'nestjs-payments';
import { systemRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import { inboxOf, post, startOn, states } from '../support/inbox/inbox-application.js';
import type { Handle } from '../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import type { InboxData } from '../support/inbox/durable-inboxes.js';
import { eventually } from '../support/time/waiting.js';

const ONE_ATTEMPT = { worker: { retry: none } };

/** An application whose `book` fails while `broken` is set, and whose `mail` succeeds. */
async function halfBroken(data: InboxData) {
  const state = { broken: true, ran: [] as string[] };
  const book: Handle = ({ id }) => {
    state.ran.push(`book ${id}`);
    if (state.broken) throw new Error('the ledger is closed');
  };
  const mail: Handle = ({ id }) => void state.ran.push(`mail ${id}`);
  const app = await startOn(data, { book, mail }, ONE_ATTEMPT);
  const receive = async (...ids: string[]): Promise<void> => {
    for (const id of ids) await post(app, id);
    const dead = { book: `${state.broken ? 'dead' : 'done'} 1`, mail: 'done 1' };
    for (const id of ids) await eventually(async () => expect(await states(app, id)).toEqual(dead));
  };
  return { app, state, receive, inbox: inboxOf(app) };
}

onEachDurableInbox((stage) => {
  it('IN-20 redrives one dead delivery, idempotently, and does not change what is done', async () => {
    const { app, state, receive, inbox } = await halfBroken(await stage.data());
    await using _app = app;
    await receive('a', 'b');
    state.broken = false;
    expect(await inbox.redrive({ ids: ['a'] })).toEqual({ events: 1, deliveries: 1 });
    await eventually(async () =>
      expect(await states(app, 'a')).toEqual({ book: 'done 1', mail: 'done 1' }),
    );
    expect(await inbox.redrive({ ids: ['a'] })).toEqual({ events: 0, deliveries: 0 });
    expect(state.ran.filter((one) => one.endsWith(' a'))).toEqual(
      expect.arrayContaining(['book a', 'book a', 'mail a']),
    );
    expect(state.ran.filter((one) => one.startsWith('mail'))).toHaveLength(2);
    expect(await states(app, 'b')).toEqual({ book: 'dead 1', mail: 'done 1' });
  });

  it('IN-20 counts in a dry run what would change, and changes nothing', async () => {
    const { app, state, receive, inbox } = await halfBroken(await stage.data());
    await using _app = app;
    await receive('a', 'b', 'c');
    const before = state.ran.length;
    const query = { dryRun: true };
    expect(await inbox.redrive(query)).toEqual({ events: 3, deliveries: 3 });
    expect(await inbox.redrive({ ...query, handlers: ['book', 'mail'] })).toEqual({
      events: 3,
      deliveries: 3,
    });
    expect(await inbox.redrive({ ...query, force: true })).toEqual({ events: 3, deliveries: 6 });
    expect(await inbox.redrive({ ...query, handler: 'mail' })).toEqual({
      events: 0,
      deliveries: 0,
    });
    expect(await inbox.skip(query)).toEqual({ events: 3, deliveries: 3 });
    expect((await inbox.stats()).deliveries).toHaveLength(1);
    expect(state.ran).toHaveLength(before);
  });

  it('IN-20 redrives by filter and by time of receipt', async () => {
    const { app, state, receive, inbox } = await halfBroken(await stage.data());
    await using _app = app;
    await receive('old');
    // The clock that stamps them may be another machine's.
    const { receivedAt } = (await inbox.get('old'))!;
    await eventually(async () => {
      await receive('new');
      expect((await inbox.get('new'))!.receivedAt.getTime()).toBeGreaterThan(receivedAt.getTime());
    });
    const from = (await inbox.get('new'))!.receivedAt;
    state.broken = false;
    const dryRun = true;
    const none = { events: 0, deliveries: 0 };
    expect(await inbox.redrive({ eventType: 'payout.settled', dryRun })).toEqual(none);
    expect(await inbox.redrive({ company: 'umbrella', dryRun })).toEqual(none);
    expect(await inbox.redrive({ state: 'skipped', dryRun })).toEqual(none);
    const query = { handler: 'book', from, company: 'default', eventType: 'transaction.completed' };
    expect(await inbox.redrive(query)).toEqual({ events: 1, deliveries: 1 });
    await eventually(async () =>
      expect(await states(app, 'new')).toEqual({ book: 'done 1', mail: 'done 1' }),
    );
    expect(await states(app, 'old')).toEqual({ book: 'dead 1', mail: 'done 1' });
    expect(await inbox.redrive({ to: from })).toEqual({ events: 1, deliveries: 1 });
    await eventually(async () =>
      expect(await states(app, 'old')).toEqual({ book: 'done 1', mail: 'done 1' }),
    );
  });

  it('IN-20 paces a redrive at ratePerSecond, by default 100 events per second', async () => {
    const { app, receive, inbox } = await halfBroken(await stage.data());
    await using _app = app;
    await receive('a', 'b', 'c', 'd');
    await inbox.pause('book');
    const duesOf = async (...ids: string[]) => {
      const dues = await Promise.all(
        ids.map(async (id) => {
          const event = (await inbox.get(id))!;
          return event.deliveries.find(({ handler }) => handler === 'book')!.dueAt!.getTime();
        }),
      );
      return dues.map((due) => due - dues[0]!);
    };
    // A database keeps microseconds, and a Date cuts them off: a difference may be a millisecond short.
    const near = (ms: number) => expect.closeTo(ms, -1);
    const slow = { ids: ['a', 'b'], ratePerSecond: 0.01 };
    expect(await inbox.redrive(slow)).toEqual({ events: 2, deliveries: 2 });
    expect(await duesOf('a', 'b')).toEqual([0, near(100_000)]);
    expect(await inbox.redrive({})).toEqual({ events: 2, deliveries: 2 });
    expect(await duesOf('c', 'd')).toEqual([0, near(10)]);
    await expect(inbox.redrive({ ratePerSecond: 0 })).rejects.toThrow(TypeError);
  });

  it('IN-20 runs done handlers again only if forced', async () => {
    const { app, state, receive, inbox } = await halfBroken(await stage.data());
    await using _app = app;
    state.broken = false;
    await receive('a');
    const none = { events: 0, deliveries: 0 };
    expect(await inbox.redrive({})).toEqual(none);
    expect(await inbox.redrive({ state: 'done' })).toEqual(none);
    expect(await inbox.redrive({ handlers: ['mail'] })).toEqual(none);
    const query = { handler: 'mail', force: true };
    expect(await inbox.redrive(query)).toEqual({ events: 1, deliveries: 1 });
    await eventually(() => expect(state.ran.toSorted()).toEqual(['book a', 'mail a', 'mail a']));
  });

  it('IN-20 runs a handler that was added since on old events, unhandled ones too', async () => {
    const data = await stage.data();
    {
      await using app = await startOn(data, {});
      await post(app, 'unhandled');
      expect(await states(app, 'unhandled')).toEqual({});
    }
    const { app: before, state, receive } = await halfBroken(data);
    state.broken = false;
    await receive('handled');
    await before.app.close();
    const ran: string[] = [];
    const book: Handle = ({ id }) => void ran.push(`book ${id}`);
    const audit: Handle = ({ id }) => void ran.push(`audit ${id}`);
    await using app = await startOn(data, { book, audit });
    const inbox = inboxOf(app);
    expect(await inbox.redrive({ state: 'unhandled', handlers: ['book'], dryRun: true })).toEqual({
      events: 1,
      deliveries: 1,
    });
    expect(await inbox.redrive({ handlers: ['audit'] })).toEqual({ events: 2, deliveries: 2 });
    await eventually(() => expect(ran.toSorted()).toEqual(['audit handled', 'audit unhandled']));
    await eventually(async () =>
      expect(await states(app, 'handled')).toEqual({
        audit: 'done 1',
        book: 'done 1',
        mail: 'done 1',
      }),
    );
    expect(await inbox.redrive({ handlers: ['audit'] })).toEqual({ events: 0, deliveries: 0 });
    await expect(inbox.redrive({ handlers: ['print'] })).rejects.toThrow(
      new TypeError('No handler is named "print". There are: audit, book, mail.'),
    );
  });

  it('IN-20 skips dead deliveries, which stay in the inbox', async () => {
    const { app, state, receive, inbox } = await halfBroken(await stage.data());
    await using _app = app;
    await receive('a', 'b');
    expect(await inbox.skip({ ids: ['a'] })).toEqual({ events: 1, deliveries: 1 });
    expect(await states(app, 'a')).toEqual({ book: 'skipped 1', mail: 'done 1' });
    state.broken = false;
    expect(await inbox.redrive({ state: 'skipped' })).toEqual({ events: 1, deliveries: 1 });
    await eventually(async () =>
      expect(await states(app, 'a')).toEqual({ book: 'done 1', mail: 'done 1' }),
    );
  });

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
    const { app, state, receive, inbox } = await halfBroken(data);
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
