import { expect, it } from '@jest/globals';
import { apiError } from 'nestjs-payments/testing';
import {
  ExpectingApplication,
  onMemoryAndSqlite,
} from '../../support/inbox/expecting-application.js';
import { Observed } from '../../support/telemetry/recording-observer.js';
import { eventually } from '../../support/time/waiting.js';
import { settled } from '../../support/inbox/settled.js';

const PAST = new Date('2026-01-01T00:00:00Z');
const PAYMENT = { company: 'default', reference: 'order-1', transactionId: 't-1' };

onMemoryAndSqlite((data) => {
  const start = async () => {
    const observed = new Observed();
    const app = await ExpectingApplication.start(await data(), { observers: [observed.observer] });
    return { app, observed };
  };

  it('TE-01 an observer gets an expectation that a webhook request fulfils, by transaction id or reference, once', async () => {
    const { app, observed } = await start();
    await using _ = app;
    await app.expect(1);
    await app.expectations.expect({ reference: 'order-2' });
    const timestamp = new Date().toISOString();
    await app.webhook('t-1', 'other', timestamp);
    await app.webhook('t-other', 'order-2');
    await app.webhook('t-1', 'other', timestamp);
    await eventually(() => expect(observed.of('expectationFulfilled')).toHaveLength(2));
    await app.ask(1);
    expect(observed.of('expectationFulfilled')).toEqual([
      { ...PAYMENT, by: 'webhook', eventId: expect.any(String) },
      {
        ...PAYMENT,
        reference: 'order-2',
        transactionId: null,
        by: 'webhook',
        eventId: expect.any(String),
      },
    ]);
  });

  it('TE-01 an observer gets each fulfilled expectation, also of transactions whose ids begin alike', async () => {
    const { app, observed } = await start();
    await using _ = app;
    const numbers = Array.from({ length: 25 }, (_n, index) => Number(`1${index}`));
    for (const n of [1, ...numbers]) await app.expect(n);
    for (const n of numbers) await app.webhook(`t-${n}`);
    await app.webhook('t-1');
    const ids = () => observed.of('expectationFulfilled').map((info) => info['transactionId']);
    const all = [...numbers, 1].map((n) => `t-${n}`);
    await eventually(() => expect(new Set(ids())).toEqual(new Set(all)));
  });

  it('TE-01 an observer gets each poll, and an expectation that a poll fulfils', async () => {
    const { app, observed } = await start();
    await using _ = app;
    app.respond(1, { status: 'processing' }, apiError(503), { status: 'complete' });
    await app.expect(1);
    for (let n = 0; n < 4; n += 1) await app.ask(1);
    const results = observed.of('pollEnded').map(({ result }) => result);
    expect(results).toEqual(['pending', 'unknown', 'event', 'event']);
    expect(observed.of('pollEnded')[0]).toEqual({
      ...PAYMENT,
      result: 'pending',
      durationMs: expect.any(Number),
    });
    await eventually(() => expect(observed.of('expectationFulfilled')).toHaveLength(1));
    expect(observed.of('expectationFulfilled')).toEqual([
      { ...PAYMENT, by: 'poll', eventId: 'poll:t-1:transaction.completed' },
    ]);
    expect(observed.of('eventReceived')).toMatchObject([{ source: 'poll' }]);
  });

  it('TE-01 an observer gets an expectation that a poll fulfils with the event of an earlier webhook request', async () => {
    const { app, observed } = await start();
    await using _ = app;
    app.respond(1, { status: 'complete' });
    await app.webhook('t-1');
    await settled(app.app);
    await app.expect(1);
    await app.ask(1);
    await eventually(() => expect(observed.of('expectationFulfilled')).toHaveLength(1));
    expect(observed.of('expectationFulfilled')).toMatchObject([{ ...PAYMENT, by: 'webhook' }]);
  });

  it('TE-01 an observer gets an overdue expectation once', async () => {
    const { app, observed } = await start();
    await using _ = app;
    app.respond(1, apiError(404));
    await app.expect(1, { dueBy: PAST });
    await eventually(() => expect(observed.of('expectationOverdue')).toHaveLength(1));
    await app.ask(1);
    expect(observed.of('expectationOverdue')).toEqual([PAYMENT]);
    expect(observed.of('eventReceived')).toMatchObject([
      { source: 'overdue', eventId: expect.stringMatching(/^overdue:order-1:/) },
    ]);
  });
});
