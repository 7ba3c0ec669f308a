import { expect, it } from '@jest/globals';
import { deliver, FakePaymentsApi, paymentEvent } from 'nestjs-payments/testing';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { settled } from '../../support/inbox/settled.js';

/** Sends a webhook request of the event with this id, and waits for the handlers of the event. */
async function webhook({ app }: ExpectingApplication, id: string): Promise<number> {
  const data = { transactionId: `of ${id}`, externalReference: 'other' };
  const { status } = await deliver(app, paymentEvent('transaction.completed', data, { id }));
  await settled(app);
  return status;
}

onMemoryAndSqlite((data) => {
  it('EX-04 a webhook request whose event id consists of "expectation:" and a reference is handled, before and after expect()', async () => {
    await using app = await ExpectingApplication.start(await data());
    expect(await webhook(app, 'expectation:order-1')).toBe(200);
    expect(await app.expectations.expect({ reference: 'order-1', transactionId: 't-1' })).toBe(
      true,
    );
    await app.expect(2);
    expect(await webhook(app, 'expectation:order-2')).toBe(200);
    expect(app.books.booked).toEqual([
      'transaction.completed of expectation:order-1 webhook',
      'transaction.completed of expectation:order-2 webhook',
    ]);
    app.respond(1, { status: 'complete' });
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'poll' } });
    expect((await app.find(2)).state).toBe('waiting');
  });

  it('EX-04 a webhook request whose event id looks like that of a poll is handled, whether it arrives before or after the poll', async () => {
    await using app = await ExpectingApplication.start(await data());
    for (const n of [1, 2]) {
      await app.expect(n);
      app.respond(n, { status: 'declined' });
      if (n === 2) await app.ask(n);
      expect(await webhook(app, `poll:t-${n}:transaction.declined`)).toBe(200);
      if (n === 1) await app.ask(n);
      expect(await app.find(n)).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'poll' } });
    }
    expect(app.books.booked).toEqual([
      'transaction.completed of poll:t-1:transaction.declined webhook',
      'transaction.declined t-1 poll',
      'transaction.declined t-2 poll',
      'transaction.completed of poll:t-2:transaction.declined webhook',
    ]);
    const id = 'service:poll:t-1:transaction.declined';
    expect(await app.inbox.get(id)).toMatchObject({ id, source: 'webhook' });
  });

  it('EX-07 a webhook request with the id of an overdue event does not replace that event', async () => {
    await using app = await ExpectingApplication.start(await data());
    expect(await webhook(app, 'overdue:order-1')).toBe(200);
    await app.expect(1, { dueBy: new Date(0) });
    app.respond(1, { status: 'processing' });
    await app.ask(1);
    expect(app.books.overdue).toMatchObject([{ data: { reference: 'order-1' } }]);
  });

  it('EX-04 the events of two polls are both handled, even if joining transaction id and event type gives the same text for both', async () => {
    const eventTypes = { b: 'transaction.completed', c: 'x:transaction.completed' };
    const interpret = Object.assign(
      ({ status }: { status?: unknown }) => ({ eventType: eventTypes[status as 'b' | 'c'] }),
      { eventTypes: Object.values(eventTypes) },
    );
    const api = new FakePaymentsApi();
    const reconcile = { ...RECONCILE, interpret };
    await using app = await ExpectingApplication.start(await data(), { reconcile }, api);
    api.respond('GET', '/v1/transactions/{id}', { status: 'c' }, { status: 'b' });
    for (const [n, transactionId] of ['t', 't:x'].entries()) {
      await app.expectations.expect({ reference: `order-${n}`, transactionId });
      const { fulfilled } = await app.ask(n);
      expect(fulfilled).toMatchObject({ eventType: Object.values(eventTypes)[1 - n] });
    }
    expect((await app.inbox.list()).events).toHaveLength(2);
  });
});

it('EX-04 encode() and decode() of the body codec are called with the same event id', async () => {
  const ids: string[] = [];
  const code = (body: Uint8Array, { id }: { id: string }) => {
    ids.push(id);
    return body.map((byte) => byte ^ 1);
  };
  const bodyCodec = { encode: code, decode: code };
  await using app = await ExpectingApplication.start(MEMORY, { bodyCodec });
  const long = `poll:${'x'.repeat(250)}`;
  expect(await webhook(app, long)).toBe(200);
  expect(app.books.booked).toEqual([`transaction.completed of ${long} webhook`]);
  expect(new Set(ids).size).toBe(1);
  expect(ids[0]).toMatch(/^service:[0-9a-f]{64}$/);
});

it('EX-03 forgetHandler() rejects the handler that polls, also if no process has the option "reconcile"', async () => {
  await using app = await ExpectingApplication.start(MEMORY, { reconcile: undefined } as object);
  await expect(app.inbox.forgetHandler('@payments/poll')).rejects.toBeInstanceOf(TypeError);
});
