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
  it('IN-20 redrive() is idempotent, runs a dead delivery again, and does not change done deliveries', async () => {
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

  it('IN-20 redrive() runs a handler that was added later for old events, including unhandled events', async () => {
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
      new TypeError('No handler is named "print". Known handlers: audit, book, mail.'),
    );
  });
});
