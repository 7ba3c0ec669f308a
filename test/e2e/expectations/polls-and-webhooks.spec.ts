import { expect, it } from '@jest/globals';
import { deliver, FakePaymentsApi, paymentEvent } from 'nestjs-payments/testing';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import {
  ExpectingApplication,
  onEachInbox,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';
import { settled } from '../../support/inbox/settled.js';

onEachInbox((data) => {
  it('EX-04 an event that a poll finds is stored, shown and handled like an event of a webhook request', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    app.respond(1, { status: 'complete', amount: 350 });
    const expectation = await app.ask(1);
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
    const id = 'poll:t-1:transaction.completed';
    const fulfilled = { by: 'poll', eventId: id, eventType: 'transaction.completed' };
    expect(expectation).toMatchObject({
      state: 'fulfilled',
      polls: 1,
      fulfilled,
      nextPollAt: null,
    });
    const stored = (await app.inbox.get(id))!;
    expect(stored).toMatchObject({ source: 'poll', orderingKey: 't-1' });
    expect(JSON.parse(stored.raw!.toString())).toMatchObject({
      id,
      eventType: 'transaction.completed',
      data: { transactionId: 't-1', status: 'complete', amount: 350 },
    });
    expect((await app.inbox.list()).events.map((event) => event.id)).toEqual([id]);
  });

  it('EX-04 a webhook request after the poll runs no handler, and its response is 200', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    app.respond(1, { status: 'complete' });
    await app.ask(1);
    expect(await app.webhook('t-1')).toBe(200);
    await settled(app.app);
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
    expect(app.books.all).toBe(1);
    expect(app.log.matching(/oncePerTransaction/)).toEqual([]);
  });

  it('EX-04 a poll after the webhook request runs no handler', async () => {
    await using app = await ExpectingApplication.start(await data());
    expect(await app.webhook('t-1')).toBe(200);
    await app.expect(1);
    app.respond(1, { status: 'complete' });
    const expectation = await app.ask(1);
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
    expect(expectation).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'webhook' } });
    expect((await app.inbox.list()).events).toHaveLength(1);
  });

  it.each([
    ['transaction', 't-1', 'other', { transactionId: 't-1' }],
    ['reference', 't-9', 'order-1', {}],
  ])(
    'EX-05 a webhook request with the %s of an expectation ends its polls',
    async (_, id, name, known) => {
      await using app = await ExpectingApplication.start(await data());
      await app.expectations.expect({ reference: 'order-1', ...known });
      expect((await app.find(1)).nextPollAt).not.toBeNull();
      expect(await app.webhook(id, name)).toBe(200);
      await settled(app.app);
      expect(await app.find(1)).toMatchObject({
        state: 'fulfilled',
        nextPollAt: null,
        polls: 0,
        fulfilled: { by: 'webhook', eventType: 'transaction.completed' },
      });
      expect(app.books.booked).toEqual([`transaction.completed ${id} webhook`]);
      expect(app.api.calls).toEqual([]);
    },
  );

  it('EX-05 an event of another transaction is handled, and a poll still finds the expected payment', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    app.respond(1, { status: 'complete' });
    expect(await app.webhook('t-9', 'order-1')).toBe(200);
    await settled(app.app);
    const { state, otherEventId } = await app.find(1);
    expect([state, otherEventId === null]).toEqual(['waiting', false]);
    await app.ask(1);
    const booked = ['transaction.completed t-9 webhook', 'transaction.completed t-1 poll'];
    expect(app.books.booked).toEqual(booked);
  });

  it('EX-05 a webhook request that arrives while a poll runs is handled once, and ends the polls', async () => {
    await using app = await ExpectingApplication.start(await data());
    const responded = Promise.withResolvers<void>();
    const called = Promise.withResolvers<void>();
    app.respond(1, async () => {
      called.resolve();
      await responded.promise;
      return { status: 'complete' };
    });
    await app.expect(1);
    await app.expectations.askNow({ reference: 'order-1' });
    await called.promise;
    expect(await app.webhook('t-1')).toBe(200);
    responded.resolve();
    await settled(app.app);
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
    expect(await app.find(1)).toMatchObject({
      state: 'fulfilled',
      fulfilled: { by: 'webhook' },
      polls: 1,
      nextPollAt: null,
    });
  });

  it('EX-05 an event of a type that no poll can find does not fulfil the expectation', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    const event = paymentEvent('transaction.updated', { transactionId: 't-1' });
    expect((await deliver(app.app, event)).status).toBe(200);
    expect(await app.find(1)).toMatchObject({ state: 'waiting', fulfilled: null });
  });

  it('EX-05 a webhook request of a stale event runs no handler and does not fulfil the expectation', async () => {
    const options = { webhook: { maxAgeMs: 60_000 } };
    await using app = await ExpectingApplication.start(await data(), options);
    await app.expect(1);
    expect(await app.webhook('t-1', 'order-1', '2026-01-01T00:00:00Z')).toBe(200);
    expect((await app.find(1)).state).toBe('waiting');
    app.respond(1, { status: 'complete' });
    await app.ask(1);
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
  });

  it('EX-10 a poll of a declined payment runs the handlers of declined payments', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    app.respond(1, { status: 'processing' }, { status: 'declined' });
    expect(await app.ask(1)).toMatchObject({ state: 'waiting', lastPoll: { result: 'pending' } });
    const expectation = await app.ask(1);
    expect(app.books.booked).toEqual(['transaction.declined t-1 poll']);
    expect(expectation).toMatchObject({
      state: 'fulfilled',
      lastPoll: { result: 'event' },
      fulfilled: { by: 'poll', eventType: 'transaction.declined' },
    });
  });
});

onEachDurableInbox((durable) => {
  it('EX-04 the handlers run once if two instances receive a webhook request and poll at the same time', async () => {
    const data = await durable.data();
    const api = new FakePaymentsApi();
    const fast = { maxPollsPerSecond: 1000, concurrency: 20 };
    const options = { reconcile: { ...RECONCILE, ...fast } };
    await using a = await ExpectingApplication.start(data, options, api);
    await using b = await ExpectingApplication.start(data, options, api);
    api.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    const numbers = Array.from({ length: 40 }, (_, n) => n);
    for (const n of numbers) await a.expect(n);
    const keys = numbers.map((n) => ({ reference: `order-${n}` }));
    const polls = keys.map((key, n) => (n % 2 === 0 ? a : b).expectations.askNow(key));
    const webhooks = numbers.map((n) => (n % 3 === 0 ? a : b).webhook(`t-${n}`));
    expect(new Set(await Promise.all(webhooks))).toEqual(new Set([200]));
    await Promise.all(polls);
    await eventually(async () => {
      for (const n of numbers) expect(await a.find(n)).toMatchObject({ state: 'fulfilled' });
    });
    await settled(a.app);
    await settled(b.app);
    const booked = [...a.books.booked, ...b.books.booked].map((line) => line.split(' ')[1]!);
    expect(booked.toSorted()).toEqual(numbers.map((n) => `t-${n}`).toSorted());
    expect(a.books.all + b.books.all).toBe(numbers.length);
  });

  it('EX-04 a process without "reconcile" reads from the inbox which events fulfil expectations', async () => {
    const data = await durable.data();
    await using a = await ExpectingApplication.start(data, { oncePerTransaction: [] });
    await a.expect(1);
    const without = { reconcile: undefined, oncePerTransaction: [] } as object;
    await using b = await ExpectingApplication.start(data, without);
    expect(await b.webhook('t-1')).toBe(200);
    expect((await b.find(1)).state).toBe('fulfilled');
    await eventually(() => expect(a.books.all + b.books.all).toBe(1));
    a.respond(1, { status: 'complete' });
    await a.ask(1);
    expect([...a.books.booked, ...b.books.booked]).toEqual(['transaction.completed t-1 webhook']);
  });
});
