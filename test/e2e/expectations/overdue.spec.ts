import { describe, expect, it } from '@jest/globals';
import { apiError, deliver, paymentEvent, TestRuntime } from 'nestjs-payments/testing';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';
import { settled } from '../../support/inbox/settled.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

const PAST = new Date('2026-01-01T00:00:00Z');

onMemoryAndSqlite((data) => {
  it('EX-07 an expectation whose dueBy has passed is overdue after one last poll, and its handlers run', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.respond(1, { status: 'processing' });
    await app.expect(1, { dueBy: PAST });
    await eventually(async () => expect((await app.find(1)).state).toBe('overdue'));
    await settled(app.app);
    expect(await app.find(1)).toMatchObject({
      polls: 1,
      lastPoll: { result: 'pending' },
      nextPollAt: null,
      fulfilled: null,
    });
    expect(app.api.calls).toHaveLength(1);
    expect(app.books.overdue).toHaveLength(1);
    expect(app.books.overdue[0]).toMatchObject({
      id: expect.stringMatching(/^overdue:order-1:\d+$/),
      eventType: '@payments/overdue',
      data: {
        reference: 'order-1',
        transactionId: 't-1',
        dueBy: expect.any(String),
        polls: 1,
        lastResult: 'pending',
      },
    });
    expect(app.books.all).toBe(0);
    const { id } = app.books.overdue[0]!;
    expect(await app.inbox.get(id)).toMatchObject({ source: 'overdue', reference: 'order-1' });
    expect((await app.inbox.list({ search: 'order-1' })).events.map((one) => one.id)).toEqual([id]);
    expect(await app.expectations.counts()).toMatchObject({
      waiting: { count: 0 },
      overdueUnpaid: { count: 1 },
      overdueUnknown: { count: 0 },
    });
  });

  it('EX-07 a late webhook request fulfils an overdue expectation, and its handlers run', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.respond(1, apiError(404));
    await app.expect(1, { dueBy: PAST });
    await eventually(async () => expect((await app.find(1)).state).toBe('overdue'));
    expect(await app.webhook('t-1')).toBe(200);
    await settled(app.app);
    expect(await app.find(1)).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'webhook' } });
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
  });

  it('EX-07 a poll of an overdue expectation can find its event, and stores no second overdue event', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.respond(1, apiError(503), apiError(503), { status: 'complete' });
    await app.expect(1, { dueBy: PAST });
    await eventually(async () => expect((await app.find(1)).state).toBe('overdue'));
    expect(await app.ask(1)).toMatchObject({ state: 'overdue', polls: 2 });
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'poll' } });
    expect(app.books.overdue).toHaveLength(1);
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
  });

  it('EX-07 a fulfilled expectation does not become overdue, also if a later poll contradicts its event', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.respond(1, { status: 'complete' }, { status: 'declined' });
    await app.expect(1, { dueBy: PAST });
    await eventually(async () => expect((await app.find(1)).state).toBe('fulfilled'));
    expect(await app.ask(1)).toMatchObject({
      state: 'fulfilled',
      lastPoll: { result: 'contradiction' },
    });
    expect(app.books.overdue).toEqual([]);
  });

  it('EX-07 a webhook request with a reserved event type is stored and runs no handler, also after a redrive', async () => {
    await using app = await ExpectingApplication.start(await data());
    const event = paymentEvent('@payments/overdue', { reference: 'order-1' });
    expect((await deliver(app.app, event)).status).toBe(200);
    await app.inbox.redrive({ state: 'unhandled' });
    await settled(app.app);
    expect(app.books.overdue).toEqual([]);
    expect(app.books.all).toBe(0);
    expect((await app.inbox.get(event.id))!.deliveries).toEqual([]);
  });
});

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('EX-07 a handler of an overdue payment runs again if the handler fails', async () => {
    const worker = { retry: { attempts: 2, waitsMs: [1], jitter: 0 } } as const;
    await using app = await ExpectingApplication.start(await durable.data(), { worker });
    let failures = 1;
    app.books.onOverdue = () => {
      if (failures-- > 0) throw new Error('mail is down');
    };
    app.respond(1, { status: 'processing' });
    await app.expect(1, { dueBy: PAST });
    await eventually(() => expect(app.books.overdue).toHaveLength(2));
  });
});

it('EX-07 without dueBy, an expectation is overdue after the last poll of its schedule', async () => {
  const runtime = new TestRuntime();
  const reconcile = { ...RECONCILE, schedule: [1000, 10_000] };
  await using app = await ExpectingApplication.start(MEMORY, { reconcile, runtime });
  app.respond(1, { status: 'processing' });
  await app.expect(1);
  await runtime.advance(9_999);
  await settled(app.app);
  expect(await app.find(1)).toMatchObject({ state: 'waiting', polls: 1 });
  await runtime.advance(1);
  await settled(app.app);
  expect(await app.find(1)).toMatchObject({ state: 'overdue', polls: 2 });
  const { data } = app.books.overdue[0]!;
  expect(data).toMatchObject({ dueBy: null, createdAt: '2026-01-01T00:00:00.000Z', polls: 2 });
});

it('EX-07 an expectation is polled once at dueBy, and not at the later times of its schedule', async () => {
  const runtime = new TestRuntime();
  await using app = await ExpectingApplication.start(MEMORY, {
    reconcile: { ...RECONCILE, schedule: [1000, 60_000] },
    runtime,
  });
  app.respond(1, { status: 'processing' });
  await app.expect(1, { dueBy: new Date(runtime.now() + 5000) });
  await runtime.advance(1000);
  await settled(app.app);
  expect((await app.find(1)).nextPollAt).toEqual(new Date(Date.UTC(2026, 0, 1, 0, 0, 5)));
  await runtime.advance(4000);
  await settled(app.app);
  expect(await app.find(1)).toMatchObject({ state: 'overdue', polls: 2 });
  await runtime.advance(600_000);
  expect(app.api.calls).toHaveLength(2);
});
