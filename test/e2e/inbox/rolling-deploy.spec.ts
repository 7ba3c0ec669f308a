import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentInbox } from 'nestjs-payments';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import type { InboxData } from '../../support/inbox/durable-inboxes.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

/** Resolves once exactly the handlers with these names are registered in the inbox. */
async function registered(inbox: PaymentInbox, ...names: string[]): Promise<void> {
  await eventually(async () => {
    const known = (await inbox.handlers()).filter(({ lastSeenAt }) => lastSeenAt !== null);
    expect(known.map(({ name }) => name)).toEqual(names);
  });
}

/** Two versions of an application. Only the second version has the handler `mail`. */
function versions(data: InboxData) {
  const ran: string[] = [];
  const handle =
    (version: string): Handle =>
    ({ id }, { handler }) =>
      void ran.push(`${version} ${handler} ${id}`);
  return {
    ran,
    /** Returns the ids of the events that the handler got in either version. */
    handled: (handler: string) =>
      ran.flatMap((one) => (one.includes(` ${handler} `) ? [one.split(' ')[2]!] : [])).toSorted(),
    old: () => startOn(data, { book: handle('old') }),
    next: () => startOn(data, { book: handle('next'), mail: handle('next') }),
    /** A process that receives events, has no handlers and never registers as a worker. */
    receiver: () => startOn(data, {}, { worker: { background: false } }),
  };
}

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('IN-32 an event that an old version receives is delivered to a handler of the new version', async () => {
    const data = await durable.data();
    const { old, next, handled, ran } = versions(data);
    await using a = await old();
    await post(a, 'before');
    await eventually(async () => expect(await states(a, 'before')).toEqual({ book: 'done 1' }));
    await using b = await next();
    await registered(inboxOf(b), 'book', 'mail');
    const ids = Array.from({ length: 10 }, (_, index) => `during-${index}`);
    for (const id of ids) expect(await post(a, id)).toBe(200);
    await eventually(() => expect(handled('mail')).toEqual(ids));
    await eventually(() => expect(handled('book')).toEqual(['before', ...ids]));
    expect(ran.filter((one) => one.startsWith('old mail'))).toEqual([]);
    expect(await states(a, 'before')).toEqual({ book: 'done 1' });
  });

  it('IN-32 a handler gets an event that was received before its registration only after a redrive', async () => {
    const data = await durable.data();
    const { old, next, handled } = versions(data);
    await using a = await old();
    await post(a, 'before');
    await using b = await next();
    await registered(inboxOf(b), 'book', 'mail');
    await post(b, 'after');
    await eventually(() => expect(handled('mail')).toEqual(['after']));
    expect(await inboxOf(a).redrive({ handlers: ['mail'] })).toEqual({ events: 1, deliveries: 1 });
    await eventually(() => expect(handled('mail')).toEqual(['after', 'before']));
  });

  it('IN-32 an event that a process without handlers receives is delivered to the handlers of other processes', async () => {
    const data = await durable.data();
    const { next, receiver, handled } = versions(data);
    await using a = await receiver();
    expect((await a.send(webhookRequest({ id: 'early' }))).body['status']).toBe('unhandled');
    {
      await using b = await next();
      await registered(inboxOf(b), 'book', 'mail');
      expect((await a.send(webhookRequest({ id: 'running' }))).body['status']).toBe('stored');
      await eventually(() => expect(handled('mail')).toEqual(['running']));
    }
    // No process has the handler `mail` now, so its deliveries wait.
    expect((await a.send(webhookRequest({ id: 'down' }))).body['status']).toBe('stored');
    expect(await states(a, 'down')).toEqual({ book: 'pending 0', mail: 'pending 0' });
    await using c = await next();
    await eventually(() => expect(handled('mail')).toEqual(['down', 'running']));
    await eventually(async () =>
      expect(await states(c, 'down')).toEqual({ book: 'done 1', mail: 'done 1' }),
    );
    expect(await states(a, 'early')).toEqual({});
    expect(a.log.matching(/No handler takes the event type/)).toHaveLength(1);
  });

  it('IN-32 the deliveries of a rolled-back handler wait until forgetHandler() skips them, and the handler gets new events after a redeployment', async () => {
    const data = await durable.data();
    const { old, next, handled } = versions(data);
    {
      await using b = await next();
      await registered(inboxOf(b), 'book', 'mail');
      expect(await inboxOf(b).forgetHandler('mail')).toBeNull();
    }
    await using a = await old();
    await post(a, 'rolled-back');
    await eventually(async () =>
      expect(await states(a, 'rolled-back')).toEqual({ book: 'done 1', mail: 'pending 0' }),
    );
    expect(await inboxOf(a).forgetHandler('mail')).toBe(1);
    expect(await states(a, 'rolled-back')).toEqual({ book: 'done 1', mail: 'skipped 0' });
    await post(a, 'forgotten');
    await eventually(async () => expect(await states(a, 'forgotten')).toEqual({ book: 'done 1' }));
    await using b = await next();
    await registered(inboxOf(b), 'book', 'mail');
    await post(a, 'again');
    await eventually(() => expect(handled('mail')).toEqual(['again']));
  });

  it('IN-32 an event whose type only the new version of a handler takes is handled only by processes of the new version', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    @Injectable()
    class Old {
      @OnPaymentEvent('paid', { name: 'ledger' })
      handle({ id, eventType }: PaymentEvent): void {
        ran.push(`old ${eventType} ${id}`);
      }
    }
    @Injectable()
    class Next {
      @OnPaymentEvent(['paid', 'refund.*'], { name: 'ledger' })
      handle({ id, eventType }: PaymentEvent): void {
        ran.push(`next ${eventType} ${id}`);
      }
    }
    const start = (provider: new () => object) =>
      WebhookApplication.start({ providers: [provider], payments: { inbox: data.inbox() } });
    await using a = await start(Old);
    await using b = await start(Next);
    await registered(inboxOf(b), 'ledger');
    await eventually(async () => {
      const [ledger] = await inboxOf(a).handlers();
      expect(ledger!.patterns.toSorted()).toEqual(['paid', 'refund.*']);
    });
    const ids = Array.from({ length: 8 }, (_, index) => `e${index}`);
    for (const id of ids)
      await a.send(webhookRequest({ id, eventType: 'refund.created', data: {} }));
    await eventually(() =>
      expect(ran.toSorted()).toEqual(ids.map((id) => `next refund.created ${id}`)),
    );
    // The old version has released the deliveries that it claimed, and counted no attempt.
    for (const id of ids) {
      await eventually(async () => expect(await states(b, id)).toEqual({ ledger: 'done 1' }));
    }
    expect(ran).toHaveLength(ids.length);
  });
});
