import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { none, OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';
import type { ConsoleApplication } from '../../support/console/console-application.js';

/** Fails with the text `fail` of an event. */
@Injectable()
class Ledger {
  @OnPaymentEvent('transaction.completed', { name: 'Ledger.post', retry: none })
  post({ data }: PaymentEvent): void {
    const { fail } = data as { fail?: string };
    if (fail !== undefined) throw new Error(fail);
  }
}

const deliver = (app: ConsoleApplication, id: string, data: Record<string, unknown>) =>
  app.deliver({ id, data });

const idsOf = async (app: ConsoleApplication, search: string) => {
  const { status, body } = await app.get(`/api/events?${new URLSearchParams({ search })}`);
  expect(status).toBe(200);
  return (body['events'] as { id: string }[]).map(({ id }) => id).toSorted();
};

const groupsOf = async (app: ConsoleApplication) => {
  const { status, body } = await app.get('/api/failures');
  expect(status).toBe(200);
  return body['groups'] as { handler: string; error: string; count: number }[];
};

/** Three failures that differ only in an id, and another one. */
async function fail(app: ConsoleApplication): Promise<void> {
  for (const [n, id] of ['e-1', 'e-2', 'e-3'].entries()) {
    await deliver(app, id, { fail: `HTTP 503 from ledger, request a1b2c3d${n}` });
    app.runtime.advance(60_000);
  }
  await deliver(app, 'e-4', { fail: 'no such account' });
  await deliver(app, 'e-5', {});
}

consoleOnEachAdapter((start) => {
  it('the console groups failed deliveries by handler and error, with times and an example', async () => {
    await using app = await start({ providers: [Ledger] });
    expect(await groupsOf(app)).toEqual([]);
    await fail(app);
    app.runtime.advance(5000);
    const [ledger, account, ...others] = await groupsOf(app);
    expect(others).toEqual([]);
    expect(ledger).toMatchObject({
      handler: 'Ledger.post',
      state: 'dead',
      count: 3,
      error: expect.stringContaining('HTTP 503 from ledger, request a1b2c3d2'),
      company: 'default',
      eventId: 'e-3',
    });
    const { oldestAt, newestAt } = ledger as unknown as Record<string, string>;
    expect(Date.parse(newestAt!) - Date.parse(oldestAt!)).toBe(120_000);
    expect(account).toMatchObject({ count: 1, eventId: 'e-4' });
  });

  it('the console lists, redrives and skips the deliveries of one group of failures only', async () => {
    await using app = await start({ providers: [Ledger] });
    await fail(app);
    const [ledger, account] = await groupsOf(app);
    const target = ({ handler, error }: { handler: string; error: string }) => ({
      filter: { state: 'dead', handler, error },
      handler,
    });
    const list = new URLSearchParams(target(ledger!).filter);
    const { body } = await app.get(`/api/events?${list}`);
    expect((body['events'] as { id: string }[]).map(({ id }) => id)).toEqual(['e-3', 'e-2', 'e-1']);
    const counted = await app.post('redrive', { ...target(ledger!), dryRun: true });
    expect(counted.body).toEqual({ events: 3, deliveries: 3 });
    expect((await app.post('skip', target(account!))).body).toEqual({ events: 1, deliveries: 1 });
    expect(await app.states('e-4')).toMatchObject({ 'Ledger.post': 'skipped' });
    expect(await app.states('e-1')).toMatchObject({ 'Ledger.post': 'dead' });
    const redriven = await app.post('redrive', { ...target(ledger!), ratePerSecond: 1000 });
    expect(redriven.body).toEqual({ events: 3, deliveries: 3 });
    expect(await app.states('e-4')).toMatchObject({ 'Ledger.post': 'skipped' });
    expect(app.actions.at(-1)).toContain(`"error":"${ledger!.error.length} characters"`);
    expect(app.actions.join()).not.toContain('HTTP 503');
  });

  it('the console shows new failures at once after an action, although it keeps the groups for seconds', async () => {
    await using app = await start({ providers: [Ledger] });
    await fail(app);
    const [, account] = await groupsOf(app);
    await deliver(app, 'e-6', { fail: 'the disk is full' });
    expect(await groupsOf(app)).toHaveLength(2);
    await app.post('skip', { filter: { handler: 'Ledger.post', error: account!.error } });
    expect((await groupsOf(app)).map(({ error }) => error)).toEqual([
      expect.stringContaining('HTTP 503'),
      expect.stringContaining('the disk is full'),
    ]);
  });

  it('the console finds events by their transaction, and by the start of their reference or id', async () => {
    await using app = await start({ providers: [Ledger] });
    const payment = { transactionId: 't-77', externalReference: 'ORDER-9', amount: 350 };
    await deliver(app, 'e-1', payment);
    await deliver(app, 'e-2', { transactionId: 't-88', fail: 'HTTP 503 from ledger' });
    expect(await idsOf(app, 't-77')).toEqual(['e-1']);
    expect(await idsOf(app, 't-7')).toEqual([]);
    expect(await idsOf(app, 'ORDER-')).toEqual(['e-1']);
    expect(await idsOf(app, 'e-')).toEqual(['e-1', 'e-2']);
    expect(await idsOf(app, 'HTTP 503')).toEqual([]);
    expect(await idsOf(app, 'RDER-9')).toEqual([]);
    const { body } = await app.get('/api/events?search=ORDER-9');
    expect(body['events']).toMatchObject([
      { reference: 'ORDER-9', amount: '350', currency: null, orderingKey: 't-77' },
    ]);
  });

  it('the console accepts a search with any characters', async () => {
    await using app = await start({ providers: [Ledger] });
    const reference = `"it's_\\ 100%`;
    await deliver(app, 'e-1', { externalReference: reference });
    for (const text of [
      '%',
      '_',
      '\\',
      `"it's_\\`,
      "'",
      '"',
      '\0',
      '\n\t',
      '🔑'.repeat(900),
      '--',
    ]) {
      expect(await idsOf(app, text)).toEqual(reference.startsWith(text) ? ['e-1'] : []);
    }
    const lone = await app.get('/api/events?search=%ED%A0%80%FF');
    expect(lone).toMatchObject({ status: 200, body: { events: [] } });
  });
});
