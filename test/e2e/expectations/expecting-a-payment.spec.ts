import { expect, it } from '@jest/globals';
import { byStatus } from 'nestjs-payments';
import type { ExpectOptions, PaymentsModuleOptions } from 'nestjs-payments';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { company, OPTIONS } from '../../support/webhook/webhook-application.js';
import { settled } from '../../support/inbox/settled.js';

onMemoryAndSqlite((data) => {
  it('EX-01 an expectation is not polled after cancel(), and a webhook request for the payment is still handled', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    expect(await app.expectations.cancel('order-1')).toBe(true);
    expect(await app.expectations.cancel('order-1')).toBe(false);
    expect(await app.expectations.cancel('order-2')).toBe(false);
    expect(await app.ask(1)).toMatchObject({ state: 'cancelled', nextPollAt: null, polls: 0 });
    expect(app.api.calls).toEqual([]);
    await app.webhook('t-1');
    await settled(app.app);
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
    expect((await app.find(1)).state).toBe('cancelled');
  });

  it('EX-01 an expectation without a reference has the transaction id as its reference', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expectations.expect({ transactionId: 'order-1' });
    expect(await app.find(1)).toMatchObject({ reference: 'order-1', transactionId: 'order-1' });
  });
});

it('EX-01 an expectation of an application with one company is fulfilled by the events of that company', async () => {
  const companies = [company('acme', OPTIONS.webhookSecret)];
  await using app = await ExpectingApplication.start(MEMORY, { companies });
  await app.expect(1);
  expect((await app.find(1)).company).toBe('acme');
  expect(await app.webhook('t-1')).toBe(200);
  expect((await app.find(1)).state).toBe('fulfilled');
});

const date = new Date();
it.each<[string, ExpectOptions, string]>([
  ['neither reference nor transaction id', {}, 'needs a "reference" or a "transactionId"'],
  ['an empty reference', { reference: '' }, '1 to 200 characters'],
  ['a long reference', { reference: 'x'.repeat(201) }, '1 to 200 characters'],
  ['a reference with a line break', { reference: 'a\nb' }, 'control characters'],
  ['an empty transaction id', { reference: 'r', transactionId: '' }, '"transactionId" must be'],
  ['an invalid company', { reference: 'r', company: 'a/b' }, '"company" must be'],
  ['an invalid date', { reference: 'r', dueBy: new Date(Number.NaN) }, '"dueBy" must be'],
  ['a date as text', { reference: 'r', dueBy: date.toISOString() as never }, '"dueBy" must be'],
  ['an empty schedule', { reference: 'r', schedule: [] }, '"schedule" must be'],
  ['a descending schedule', { reference: 'r', schedule: [2, 1] }, 'ascending'],
])('EX-01 expect() with %s throws a TypeError', async (_, payment, message) => {
  await using app = await ExpectingApplication.start(MEMORY);
  const rejected = app.expectations.expect(payment);
  await expect(rejected).rejects.toBeInstanceOf(TypeError);
  await expect(rejected).rejects.toThrow(message);
  expect((await app.expectations.list()).expectations).toEqual([]);
});

it('EX-01 expect() with a transaction throws a TypeError in the memory inbox', async () => {
  await using app = await ExpectingApplication.start(MEMORY);
  const rejected = app.expectations.expect({ reference: 'r' }, { tx: { query: () => [] } });
  await expect(rejected).rejects.toBeInstanceOf(TypeError);
});

it('EX-02 without the option "reconcile", expect() throws an error that names the option', async () => {
  const options = { reconcile: undefined } as object;
  await using app = await ExpectingApplication.start(MEMORY, options);
  const { expectations } = app;
  expect(expectations.enabled).toBe(false);
  const error = { code: 'options_invalid', message: expect.stringContaining('"reconcile"') };
  await expect(expectations.expect({ reference: 'r' })).rejects.toMatchObject(error);
  await expect(expectations.askNow({ reference: 'r' })).rejects.toMatchObject(error);
  await expect(expectations.sweep({ from: date, to: date })).rejects.toMatchObject(error);
});

it.each<[string, unknown, string]>([
  ['a text instead of an object', 'byStatus', '"reconcile" must be'],
  ['no interpret', {}, '"reconcile.interpret" must be'],
  ['an unknown name', { ...RECONCILE, interval: 1 }, 'no option "reconcile.interval"'],
  ['a text as find', { ...RECONCILE, find: 't-1' }, '"reconcile.find" must be'],
  ['a number as schedule', { ...RECONCILE, schedule: 1000 }, '"reconcile.schedule" must be'],
  ['a pattern as event type', { ...RECONCILE, eventTypes: ['a.*'] }, '"reconcile.eventTypes"'],
  [
    'a reserved event type',
    { ...RECONCILE, eventTypes: ['@payments/x'] },
    '"reconcile.eventTypes"',
  ],
  ['no event type', { ...RECONCILE, eventTypes: [] }, '"reconcile.eventTypes"'],
  ['a rate of 0', { ...RECONCILE, maxPollsPerSecond: 0 }, '"reconcile.maxPollsPerSecond"'],
  ['a concurrency of 1,001', { ...RECONCILE, concurrency: 1001 }, '"reconcile.concurrency"'],
])('EX-02 an application with %s in "reconcile" does not boot', async (_, reconcile, message) => {
  const options = { reconcile } as Partial<PaymentsModuleOptions>;
  const error = { code: 'options_invalid', message: expect.stringContaining(message) };
  await expect(ExpectingApplication.start(MEMORY, options)).rejects.toMatchObject(error);
});

it.each([[{}], [{ complete: '' }], [{ complete: '*' }], [{ complete: '@payments/overdue' }]])(
  'EX-02 byStatus(%j) throws a TypeError',
  (types) => {
    expect(() => byStatus(types as Record<string, string>)).toThrow(TypeError);
  },
);
