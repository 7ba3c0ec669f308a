import { expect, it } from '@jest/globals';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';
import { expectationsOf, TransactionService } from '../../support/console/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';

/** The references in a response, in order. */
const references = (body: unknown): string[] =>
  (body as { expectations: { reference: string }[] }).expectations.map((one) => one.reference);

const QUERIES: [string, string][] = [
  ['state=lost', '"state" must be one of waiting, fulfilled, overdue, cancelled.'],
  ['overdue=yes', '"overdue" must be one of unpaid, unknown.'],
  ['fulfilledBy=fax', '"fulfilledBy" must be one of webhook, poll.'],
  ['contradictory=false', '"contradictory" must be one of true.'],
  ['company=a%20b', '"company" must be the id of a company'],
  ['limit=201', '"limit" must be a whole number from 1 to 200.'],
  ['after=%27', '"after" must be the value of "next" in the previous page.'],
  [
    'order=oldest',
    'The query must not have the field "order". Its fields are: company, state, overdue, ful',
  ],
];

const one = { company: 'default', reference: 'order-1' };
const A_LIST = 'must be a list of 1 to 1,000 expectations, each with "company" and "reference".';
const BODIES: [string, unknown, string][] = [
  ['no list', {}, `"expectations" is missing. It ${A_LIST}`],
  ['an empty list', { expectations: [] }, `"expectations" ${A_LIST}`],
  [
    '1,001 expectations',
    { expectations: Array.from({ length: 1001 }, () => one) },
    `"expectations" ${A_LIST}`,
  ],
  ['a text', { expectations: ['order-1'] }, `"expectations" ${A_LIST}`],
  ['no company', { expectations: [{ reference: 'x' }] }, '"expectations[0].company" is missing.'],
  [
    'a reference with a line break',
    { expectations: [one, { company: 'default', reference: 'a\nb' }] },
    '"expectations[1].reference" must be a text of 1 to 200 characters',
  ],
  ['a filter', { expectations: [one], filter: {} }, 'must not have the field "filter".'],
];

consoleOnEachAdapter((start) => {
  it('EX-12 the console lists expectations by state, result, reference and transaction id', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    const expectations = expectationsOf(app);
    service.statuses.set('t-found', 'complete');
    await expectations.expect({ reference: 'order-1' });
    await expectations.expect({ reference: 'order-2', transactionId: 't-found' });
    await expectations.expect({ reference: 'order-3', transactionId: 't-hook' });
    await expectations.expect({ reference: 'order-4', company: 'default', transactionId: 't-4' });
    await expectations.cancel('order-4');
    await app.deliver({ id: 'e-1', data: { transactionId: 't-hook' } });
    await app.post('ask', { expectations: [{ company: 'default', reference: 'order-2' }] });
    const list = async (query: string) => {
      const { status, body } = await app.get(`/api/expectations?${query}`);
      expect(status).toBe(200);
      return references(body);
    };
    await eventually(async () => expect(await list('fulfilledBy=poll')).toEqual(['order-2']));
    expect(await list('')).toEqual(['order-4', 'order-3', 'order-2', 'order-1']);
    expect(await list('state=waiting')).toEqual(['order-1']);
    expect(await list('state=cancelled')).toEqual(['order-4']);
    expect(await list('fulfilledBy=webhook')).toEqual(['order-3']);
    expect(await list('state=overdue')).toEqual([]);
    expect(await list('contradictory=true')).toEqual([]);
    expect(await list('search=order-')).toHaveLength(4);
    expect(await list('search=t-f')).toEqual(['order-2']);
    expect(await list('company=other')).toEqual([]);

    const first = await app.get('/api/expectations?limit=3');
    expect(references(first.body)).toEqual(['order-4', 'order-3', 'order-2']);
    expect(await list(`limit=3&after=${String(first.body['next'])}`)).toEqual(['order-1']);
    const found = await app.get('/api/expectations?search=t-f');
    expect(found.body).toMatchObject({
      expectations: [
        {
          ...one,
          reference: 'order-2',
          transactionId: 't-found',
          state: 'fulfilled',
          polls: 1,
          lastPoll: { result: 'event' },
          nextPollAt: null,
          fulfilled: { by: 'poll', eventType: 'transaction.completed' },
          contradiction: null,
        },
      ],
    });
  });

  it('EX-12 the console makes the polls of selected expectations due now, and logs the name of the operator', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    const expectations = expectationsOf(app);
    await expectations.expect({ reference: 'order-1', transactionId: 't-1' });
    await expectations.expect({ reference: 'order-2', transactionId: 't-2' });
    expect(service.lookups).toEqual([]);
    service.statuses.set('t-1', 'complete');
    const unknown = { company: 'default', reference: 'nobody' };
    expect(await app.post('ask', { expectations: [one, unknown] })).toMatchObject({
      status: 200,
      body: { polls: 1 },
    });
    await eventually(async () => {
      expect(await expectations.get('order-1')).toMatchObject({ state: 'fulfilled' });
    });
    expect(service.lookups).toEqual(['t-1']);
    expect(app.orders.seen).toHaveLength(1);
    expect(app.actions).toEqual(['log "ann": asked about 2 expectations: 1 poll PaymentsConsole']);
  });

  it('EX-21 the console closes expectations with a note and the name of the operator, and an event that arrives later is handled', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    const expectations = expectationsOf(app);
    await expectations.expect({ reference: 'order-1', transactionId: 't-1' });
    const selection = [one, { company: 'default', reference: 'nobody' }];
    for (const [note, message] of [
      [undefined, '"note" is missing. It must be a text of 1 to 500 characters'],
      ['', '"note" must be a text of 1 to 500 characters'],
    ] as const) {
      const { status, body } = await app.post('close', { expectations: selection, note });
      expect([status, body['error']]).toEqual([400, expect.stringContaining(message)]);
    }
    const note = 'The customer paid in cash.';
    const closed = await app.post('close', { expectations: selection, note });
    expect(closed).toMatchObject({ status: 200, body: { closed: 1 } });
    expect(app.actions.at(-1)).toBe(
      'log "ann": closed 2 expectations: "order-1", "nobody" with the note "The customer paid in cash." (1 was open) PaymentsConsole',
    );
    const { body } = await app.get('/api/expectations?state=cancelled');
    const ended = { state: 'cancelled', cancelled: { by: 'ann', note }, nextPollAt: null };
    expect(body['expectations']).toMatchObject([ended]);
    await app.deliver({ id: 'e-1', data: { transactionId: 't-1' } });
    expect(app.orders.seen).toEqual(['e-1']);
    expect(await expectations.get('order-1')).toMatchObject(ended);
  });

  it('EX-12 the console counts open expectations in the overview, only with the option reconcile', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    await expectationsOf(app).expect({ reference: 'order-1', transactionId: 't-1' });
    const { body } = await app.get('/api/overview');
    expect(body['expectations']).toEqual({
      waiting: { count: 1, more: false },
      overdueUnpaid: { count: 0, more: false },
      overdueUnknown: { count: 0, more: false },
    });

    await using without = await start();
    expect((await without.get('/api/overview')).body['expectations']).toBeNull();
    const message = /^The application has no expectations: set the option "reconcile"/;
    expect(await without.get('/api/expectations')).toMatchObject({
      status: 404,
      body: { error: expect.stringMatching(message) },
    });
    expect(await without.post('ask', { expectations: [one] })).toMatchObject({ status: 404 });
  });

  it('EX-12 the console rejects invalid queries and bodies about expectations, and names the field', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    for (const [query, message] of QUERIES) {
      const { status, body } = await app.get(`/api/expectations?${query}`);
      expect({ query, status, body }).toEqual({
        query,
        status: 400,
        body: { error: expect.stringContaining(message) },
      });
    }
    for (const [title, sent, message] of BODIES) {
      const { status, body } = await app.post('ask', sent);
      expect({ title, status, body }).toEqual({
        title,
        status: 400,
        body: { error: expect.stringContaining(message) },
      });
    }
    expect(service.lookups).toEqual([]);
  });
});
