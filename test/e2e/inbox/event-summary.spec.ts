import { describe, expect, it } from '@jest/globals';
import { memoryInbox, none } from 'nestjs-payments';
import type { EventSummary, PaymentEvent, PaymentsModuleOptions } from 'nestjs-payments';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import { eventually } from '../../support/time/waiting.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

const DATA = { transactionId: 'tx-1', externalReference: 'order-7', amount: 350.5 };
const NOTHING = { reference: null, amount: null, currency: null };

/** Returns the stored summary of an event with the given data, in an application with the given option `summary`. */
async function summaryOf(
  summary: PaymentsModuleOptions['summary'] | 'default',
  data: Record<string, unknown> = DATA,
) {
  const option = summary === 'default' ? {} : { summary };
  const inbox = { inbox: () => memoryInbox() };
  const app = await startOn(inbox, { book: () => {} }, option as Partial<PaymentsModuleOptions>);
  await using _app = app;
  expect(await post(app, 'event', data)).toBe(200);
  const { reference, amount, currency } = (await inboxOf(app).get('event'))!;
  const [listed] = (await inboxOf(app).list()).events;
  expect(listed).toMatchObject({ reference, amount, currency, orderingKey: data['transactionId'] });
  return { reference, amount, currency };
}

it('list() returns the reference and the amount from the data of an event by default', async () => {
  expect(await summaryOf('default')).toEqual({ ...NOTHING, reference: 'order-7', amount: '350.5' });
  const { externalReference: _, ...account } = { ...DATA, accountReference: 'INV 12' };
  expect(await summaryOf('default', account)).toMatchObject({ reference: 'INV 12' });
  const garbage = { transactionId: 'tx-1', externalReference: 7, amount: {}, currency: [] };
  expect(await summaryOf('default', garbage)).toEqual(NOTHING);
});

it('list() returns what the function in the option "summary" returns, and no summary if the option is null', async () => {
  const own = { reference: 'R1', amount: '350.50', currency: 'KES' };
  expect(await summaryOf(() => own)).toEqual(own);
  expect(await summaryOf(null)).toEqual(NOTHING);
});

const FAILING: Record<string, (event: PaymentEvent) => unknown> = {
  'that throws': () => {
    throw new Error('no summary');
  },
  'that returns a promise that rejects': () => Promise.reject(new Error('no summary')),
  'that returns fields of another type': () => ({ reference: {}, amount: NaN, currency: 1 }),
  'whose result has a getter that throws': () => ({
    get reference() {
      throw new Error('no reference');
    },
  }),
  'that changes its event': (event) => {
    Object.assign(event.data, { transactionId: 'tx-2' });
    Object.assign(event, { id: 'other', eventType: 'other', timestamp: '1999-01-01T00:00:00Z' });
  },
};
it.each(Object.entries(FAILING))(
  'an event is stored without a summary if the option "summary" is a function %s',
  async (_what, summary) => {
    expect(await summaryOf(summary as (event: PaymentEvent) => EventSummary)).toEqual(NOTHING);
  },
);

it('a long summary is cut, and lone surrogates and NULs are replaced', async () => {
  const summary = () => ({
    reference: `\0\uD83D${'x'.repeat(1_000_000)}`,
    currency: 'K'.repeat(99),
  });
  expect(await summaryOf(summary)).toEqual({
    reference: `\uFFFD\uFFFD${'x'.repeat(198)}`,
    amount: null,
    currency: 'K'.repeat(10),
  });
});

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('failures() groups errors that differ only in ids, and redrive({ error }) runs one group again', async () => {
    let broken = true;
    const book = ({ id }: { id: string }) => {
      if (!broken) return;
      if (id.startsWith('stock')) throw new Error('HTTP 409 from stock');
      throw new Error(`HTTP 503 from ledger, request ${id === 'a' ? '83a1f00c' : '10293847'}`);
    };
    const app = await startOn(await durable.data(), { book }, { worker: { retry: none } });
    await using _app = app;
    const inbox = inboxOf(app);
    for (const id of ['a', 'b', 'stock']) await post(app, id);
    await eventually(async () =>
      expect((await inbox.stats()).deliveries).toMatchObject([{ state: 'dead', count: 3 }]),
    );
    const { groups, more } = await inbox.failures();
    expect(more).toBe(false);
    expect(groups.map(({ count, state, handler }) => [count, state, handler])).toEqual([
      [2, 'dead', 'book'],
      [1, 'dead', 'book'],
    ]);
    broken = false;
    const query = { error: groups[0]!.error, handler: 'book' };
    expect(await inbox.redrive({ ...query, dryRun: true })).toEqual({ events: 2, deliveries: 2 });
    expect(await inbox.redrive(query)).toEqual({ events: 2, deliveries: 2 });
    await eventually(async () =>
      expect((await inbox.failures()).groups).toMatchObject([{ count: 1, eventId: 'stock' }]),
    );
    // An HTTP status is not an id. Therefore errors with the statuses 404 and 409 are in different groups.
    const { error } = groups[1]!;
    const skipped = (events: number) => ({ events, deliveries: events });
    expect(await inbox.skip({ error: error.replace('409', '404') })).toEqual(skipped(0));
    expect(await inbox.skip({ error })).toEqual(skipped(1));
    expect(await inbox.failures()).toEqual({ groups: [], more: false });
  });
});
