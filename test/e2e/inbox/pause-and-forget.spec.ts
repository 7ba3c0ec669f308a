import { expect, it } from '@jest/globals';
import { none } from 'nestjs-payments';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

onEachDurableInbox((durable) => {
  it('IN-27 pause() and resume() apply in every application, and events are still received', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }, { handler }) => void ran.push(`${handler} ${id}`);
    await using a = await startOn(data, { book: handle, mail: handle });
    await using b = await startOn(data, { book: handle, mail: handle });
    await inboxOf(a).pause('book');
    expect((await inboxOf(b).stats()).paused).toMatchObject([{ handler: 'book' }]);
    for (const [index, app] of [a, b].entries()) expect(await post(app, `e${index}`)).toBe(200);
    await eventually(() => expect(ran.toSorted()).toEqual(['mail e0', 'mail e1']));
    await inboxOf(b).pause();
    expect(await post(b, 'e2')).toBe(200);
    await inboxOf(b).resume('book');
    expect((await inboxOf(a).stats()).paused).toMatchObject([{ handler: '*' }]);
    expect(await states(a, 'e0')).toEqual({ book: 'pending 0', mail: 'done 1' });
    expect(await states(a, 'e2')).toEqual({ book: 'pending 0', mail: 'pending 0' });
    await inboxOf(a).resume();
    const all = ['book e0', 'book e1', 'book e2', 'mail e0', 'mail e1', 'mail e2'];
    await eventually(() => expect(ran.toSorted()).toEqual(all));
    await expect(inboxOf(a).pause('bock')).rejects.toThrow(
      new TypeError('No handler is named "bock". Known handlers: book, mail.'),
    );
  });

  it('OP-42 a pause with "until" ends by itself in every application, and shows who paused the handler and why', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }) => void ran.push(id);
    const worker = { leaseMs: 1000 };
    await using a = await startOn(data, { book: handle }, { worker });
    await using b = await startOn(data, { book: handle }, { worker });
    const until = new Date(Date.now() + 1500);
    await inboxOf(a).pause('book', { who: 'ann', reason: 'the ledger is migrated', until });
    expect((await inboxOf(b).stats()).paused).toEqual([
      {
        handler: 'book',
        pausedAt: expect.any(Date),
        who: 'ann',
        reason: 'the ledger is migrated',
        until,
      },
    ]);
    expect(await post(b, 'e1')).toBe(200);
    expect(await states(a, 'e1')).toEqual({ book: 'pending 0' });
    await eventually(() => expect(ran).toEqual(['e1']));
    expect(Date.now()).toBeGreaterThanOrEqual(until.getTime());
    expect((await inboxOf(a).stats()).paused).toEqual([]);
  });

  it('OP-41 an acknowledged group of failures shows its note in every application until the group changes', async () => {
    const data = await durable.data();
    const fail = () => {
      throw new Error('no ledger 83a1f00c');
    };
    const worker = { retry: none };
    await using a = await startOn(data, { book: fail }, { worker });
    await using b = await startOn(data, { book: fail }, { worker });
    const groups = async (app: typeof a, count: number) =>
      eventually(async () => {
        const { groups: found } = await inboxOf(app).failures();
        expect(found).toMatchObject([{ handler: 'book', state: 'dead', count }]);
        return found[0]!;
      });
    await post(a, 'e1');
    const seen = await groups(a, 1);
    expect(seen).toMatchObject({ companies: 1, acknowledged: null });
    expect(seen.parts).toEqual(['Error: no ledger ', '83a1f00c', '']);
    expect(seen.trend).toEqual([...Array.from({ length: 23 }, () => 0), 1]);
    await inboxOf(a).acknowledge({ ...seen, who: 'ann', note: 'ledger team knows' });
    const known = { who: 'ann', note: 'ledger team knows', at: expect.any(Date) };
    expect((await groups(b, 1)).acknowledged).toEqual({ ...known, changed: false });
    await post(b, 'e2');
    const more = await groups(b, 2);
    expect(more.acknowledged).toEqual({ ...known, changed: true });
    await inboxOf(b).acknowledge({ ...more, who: null, note: 'still known' });
    const again = await groups(a, 2);
    expect(again.acknowledged).toMatchObject({ who: null, note: 'still known', changed: false });
    await inboxOf(a).redrive({ handler: 'book' });
    await eventually(async () =>
      expect((await groups(a, 2)).acknowledged).toMatchObject({ changed: true }),
    );
    await expect(inboxOf(a).acknowledge({ ...more, who: null, note: '' })).rejects.toThrow(
      new TypeError('"note" must be a text of 1 to 500 characters.'),
    );
    await inboxOf(b).acknowledge({ ...more, who: 'bob', note: null });
    expect((await groups(a, 2)).acknowledged).toBeNull();
  });
});
