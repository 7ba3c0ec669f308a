import { expect, it } from '@jest/globals';
import {
  inboxOf,
  post,
  startHalfBroken,
  startOn,
  states,
} from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

onEachDurableInbox((durable) => {
  it('IN-20 redrive() is idempotent, runs a dead delivery again, and does not change done ones', async () => {
    const { app, state, receive, inbox } = await startHalfBroken(await durable.data());
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

  it('IN-20 a dry run counts what would change, and changes nothing', async () => {
    const { app, state, receive, inbox } = await startHalfBroken(await durable.data());
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

  it('IN-20 redrive() selects by filter and by time of receipt', async () => {
    const { app, state, receive, inbox } = await startHalfBroken(await durable.data());
    await using _app = app;
    await receive('old');
    // The times of receipt may come from the clock of another machine.
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

  it('IN-20 redrive() makes ratePerSecond events due per second, 100 by default', async () => {
    const { app, receive, inbox } = await startHalfBroken(await durable.data());
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
    // The database stores microseconds and a Date cuts them off, so a difference may be 1 ms too small.
    const near = (ms: number) => expect.closeTo(ms, -1);
    const slow = { ids: ['a', 'b'], ratePerSecond: 0.01 };
    expect(await inbox.redrive(slow)).toEqual({ events: 2, deliveries: 2 });
    expect(await duesOf('a', 'b')).toEqual([0, near(100_000)]);
    expect(await inbox.redrive({})).toEqual({ events: 2, deliveries: 2 });
    expect(await duesOf('c', 'd')).toEqual([0, near(10)]);
    await expect(inbox.redrive({ ratePerSecond: 0 })).rejects.toThrow(TypeError);
  });

  it('IN-20 redrive() runs done deliveries again only with force', async () => {
    const { app, state, receive, inbox } = await startHalfBroken(await durable.data());
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

  it('IN-20 redrive() runs a handler that was added later on old events, also unhandled ones', async () => {
    const data = await durable.data();
    {
      await using app = await startOn(data, {});
      await post(app, 'unhandled');
      expect(await states(app, 'unhandled')).toEqual({});
    }
    const { app: before, state, receive } = await startHalfBroken(data);
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

  it('IN-20 skip() skips dead deliveries, which stay in the inbox', async () => {
    const { app, state, receive, inbox } = await startHalfBroken(await durable.data());
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
});
