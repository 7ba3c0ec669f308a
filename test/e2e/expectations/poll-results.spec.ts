import { expect, it } from '@jest/globals';
import { byStatus } from 'nestjs-payments';
import { apiError, TestRuntime } from 'nestjs-payments/testing';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { settled } from '../../support/inbox/settled.js';

onMemoryAndSqlite((data) => {
  it('EX-06 a poll that contradicts a handled event is recorded, logged once, and changes nothing', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    expect(await app.webhook('t-1')).toBe(200);
    await settled(app.app);
    app.respond(1, { status: 'declined' });
    await app.ask(1);
    const expectation = await app.ask(1);
    expect(expectation).toMatchObject({
      state: 'fulfilled',
      fulfilled: { by: 'webhook', eventType: 'transaction.completed' },
      lastPoll: { result: 'contradiction' },
      nextPollAt: null,
      polls: 2,
    });
    expect(expectation.contradiction).toContain('"transaction.declined"');
    expect(expectation.contradiction).toContain('"transaction.completed"');
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
    expect((await app.inbox.list()).events).toHaveLength(1);
    expect(app.log.matching(/contradicts the inbox/)).toHaveLength(1);
    const { expectations } = await app.expectations.list({ contradictory: true });
    expect(expectations.map(({ reference }) => reference)).toEqual(['order-1']);
    app.respond(1, { status: 'complete' });
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled', lastPoll: { result: 'event' } });
    expect(app.books.booked).toHaveLength(1);
  });

  it('EX-06 after 404, 5xx, timeouts, a missing token or a failed connection, the result is unknown, and the payment is polled again', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    const failures = [
      apiError(404),
      apiError(500),
      apiError(503),
      apiError('timeout'),
      apiError('rate_limited'),
      apiError('token_unavailable'),
      apiError('connection_failed'),
      apiError(401),
    ];
    app.respond(1, failures[0], ...failures.slice(1), { status: 'complete' });
    for (const { code } of failures) {
      const expectation = await app.ask(1);
      expect(expectation).toMatchObject({ state: 'waiting', lastPoll: { result: 'unknown' } });
      expect(expectation.lastPoll!.detail).toContain(code);
      expect(expectation.nextPollAt).not.toBeNull();
    }
    expect((await app.inbox.stats()).deliveries).toEqual([]);
    expect((await app.ask(1)).state).toBe('fulfilled');
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
  });
});

const TOO_BIG = { eventType: 'transaction.completed', data: { amount: 1n } };

it.each<[string, () => unknown, string]>([
  [
    'throws',
    () => {
      throw new Error('no status');
    },
    'no status',
  ],
  ['rejects', () => Promise.reject(new Error('late')), 'late'],
  ['returns null', () => null, 'null'],
  ['returns another text', () => 'complete', 'a value of type string'],
  ['returns an unknown type', () => ({ eventType: 'x', data: {} }), 'reconcile.eventTypes'],
  ['returns a reserved type', () => ({ eventType: '@payments/overdue' }), 'reconcile.eventTypes'],
  ['returns a text as data', () => ({ ...TOO_BIG, data: 'paid' }), 'an object as "data"'],
  ['returns data with a BigInt', () => TOO_BIG, 'BigInt'],
  [
    'returns data of another transaction',
    () => ({ ...TOO_BIG, data: { transactionId: 't-2' } }),
    'another transaction',
  ],
])(
  'EX-02 if interpret() %s, the result is unknown and is logged once, and the payment is polled again',
  async (_, interpret, detail) => {
    let result = interpret;
    const reconcile = {
      ...RECONCILE,
      interpret: () => result() as 'pending',
      eventTypes: ['transaction.completed'],
    };
    await using app = await ExpectingApplication.start(MEMORY, { reconcile });
    await app.expect(1);
    app.respond(1, { status: 'complete' });
    await app.ask(1);
    const expectation = await app.ask(1);
    expect(expectation).toMatchObject({
      state: 'waiting',
      polls: 2,
      lastPoll: { result: 'unknown' },
    });
    expect(expectation.lastPoll!.detail).toContain(detail);
    expect(app.log.matching(/order-1/)).toHaveLength(1);
    expect((await app.inbox.list()).events).toEqual([]);
    result = () => ({ eventType: 'transaction.completed' });
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled' });
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
  },
);

it('EX-06 an unknown result is logged once as long as its cause stays the same', async () => {
  const runtime = new TestRuntime();
  await using app = await ExpectingApplication.start(MEMORY, { runtime });
  await app.expect(1);
  app.respond(1, apiError(404), apiError(404), apiError(503), apiError(503));
  for (const lines of [1, 1, 2, 2]) {
    await app.ask(1);
    expect(app.log.matching(/order-1/)).toHaveLength(lines);
    await runtime.advance(120_000);
  }
});

it('EX-06 if `interpret` throws an error with a long message, the error is logged once', async () => {
  const runtime = new TestRuntime();
  const interpret = () => {
    throw new Error('x'.repeat(5000));
  };
  await using app = await ExpectingApplication.start(MEMORY, { runtime, reconcile: { interpret } });
  await app.expect(1);
  app.respond(1, { status: 'complete' });
  for (let poll = 1; poll <= 3; poll += 1) {
    expect((await app.ask(1)).lastPoll!.detail).toHaveLength(1000);
    expect(app.log.matching(/order-1/)).toHaveLength(1);
    await runtime.advance(120_000);
  }
});

it('EX-02 interpret() gets the transaction and the expected payment of this transaction', async () => {
  const seen: unknown[] = [];
  const interpret = (...args: unknown[]) => {
    seen.push(args);
    return 'pending' as const;
  };
  await using app = await ExpectingApplication.start(MEMORY, { reconcile: { interpret } });
  await app.expect(1);
  app.respond(1, { status: 'new' });
  await app.ask(1);
  const payment = { company: 'default', reference: 'order-1', transactionId: 't-1' };
  expect(seen).toEqual([[{ status: 'new' }, payment]]);
});

it.each([
  ['complete', 'transaction.completed'],
  ['declined', 'transaction.declined'],
  ['processing', 'pending'],
  ['__proto__', 'pending'],
  [undefined, 'unknown'],
  [null, 'unknown'],
])('EX-02 byStatus() reads the status %j as %s', async (status, meaning) => {
  const interpret = byStatus({
    complete: 'transaction.completed',
    declined: 'transaction.declined',
  });
  const payment = { company: 'default', reference: 'r', transactionId: 't' };
  const transaction = { status, amount: 1 };
  const result = await interpret(transaction, payment);
  const expected = meaning.includes('.') ? { eventType: meaning, data: transaction } : meaning;
  expect(result).toEqual(expected);
});
