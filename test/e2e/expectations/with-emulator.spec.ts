import { beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { byStatus, OnPaymentEvent, OnPaymentOverdue, PaymentExpectations } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, ReconcileOptions } from 'nestjs-payments';
import type { FaultPlan } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../../support/time/waiting.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

const payment = { amount: 1500, externalReference: 'order-60' };
const reference = payment.externalReference;

/** Polls soon and often, so that a test need not wait. */
const SOON = Array.from({ length: 90 }, (_, index) => 50 * (index + 1));
/** A first poll that no test waits for: polls take place only on request. */
const LATER = [3_600_000];

/** Each execution of a handler: the event type and the source of the event. */
let handled: string[] = [];

@Injectable()
class Orders {
  @OnPaymentEvent('transaction.completed')
  paid({ eventType }: PaymentEvent, { source }: PaymentEventContext): void {
    handled.push(`${eventType} by ${source}`);
  }

  @OnPaymentEvent('transaction.declined')
  declined({ eventType, data }: PaymentEvent, { source }: PaymentEventContext): void {
    handled.push(`${eventType} by ${source}: ${String(data['status'])}`);
  }

  @OnPaymentOverdue()
  overdue(): void {
    handled.push('overdue');
  }
}

/** Finds a transaction as a merchant of the emulator does: with the company's access token. */
const find: NonNullable<ReconcileOptions['find']> = async (of, api, { signal }) => {
  const { transactions } = await api.get<{ transactions: { transactionId: string }[] }>(
    '/emulator/payments',
    { query: { externalReference: of }, signal },
  );
  return transactions[0]?.transactionId;
};

/**
 * Starts an emulator, and an application with two companies. The application receives the webhook requests of the
 * emulator, and polls the emulator.
 */
async function startBoth(faults: FaultPlan, schedule: readonly number[] = SOON) {
  const clock = new ManualClock();
  const emulator = await PaymentsEmulator.start({ clock, faults });
  emulator.createCompany({ companyId: 'other' });
  const statuses = { complete: 'transaction.completed', failed: 'transaction.declined' };
  const app = await WebhookApplication.start({
    providers: [Orders],
    payments: {
      baseUrl: emulator.baseUrl,
      companies: emulator.companies().map(({ companyId: id, ...company }) => ({
        id,
        clientId: company.clientId,
        clientSecret: company.clientSecret,
        webhookSecret: company.webhookSecret,
      })),
      reconcile: { interpret: byStatus(statuses), find, schedule, maxPollsPerSecond: 1000 },
    },
  });
  for (const { companyId } of emulator.companies()) {
    emulator.setWebhook({ companyId, url: `${app.url}/webhooks/payments/${companyId}` });
  }
  const expectations = app.app.get(PaymentExpectations);
  return {
    clock,
    emulator,
    app,
    expectations,
    /** Waits until the expectation has the given fields. */
    shows: (fields: object, company = 'default') =>
      eventually(async () =>
        expect(await expectations.get(reference, { company })).toMatchObject(fields),
      ),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await emulator.close();
    },
  };
}

const BY_POLL = { state: 'fulfilled', fulfilled: { by: 'poll' } };

beforeEach(() => {
  handled = [];
});

describe('expectations against the emulator', () => {
  it('EX-04 a poll finds a payment that completed during a webhook outage, and a late webhook request changes nothing', async () => {
    await using both = await startBoth({ delivery: { off: true } });
    const { emulator, expectations } = both;
    const { transactionId } = emulator.createStkPush(payment);
    await expectations.expect({ reference, transactionId });
    emulator.complete(transactionId);
    await both.shows(BY_POLL);
    await eventually(() => expect(handled).toEqual(['transaction.completed by poll']));
    const [dropped] = emulator.deliveries();
    expect(dropped?.state).toBe('dropped');
    expect(await emulator.redeliver(dropped?.id ?? '')).toMatchObject({ state: 'delivered' });
    expect(handled).toEqual(['transaction.completed by poll']);
  });

  it('EX-05 a webhook request fulfils the expectation, and the module makes no poll', async () => {
    await using both = await startBoth({ api: { error: {} } });
    const { emulator, expectations } = both;
    await expectations.expect({ reference, schedule: LATER });
    const { transactionId } = emulator.createCheckoutInvoice(payment);
    emulator.complete(transactionId);
    await emulator.idle();
    await both.shows({
      state: 'fulfilled',
      fulfilled: { by: 'webhook' },
      polls: 0,
      nextPollAt: null,
    });
    expect(handled).toEqual(['transaction.completed by webhook']);
  });

  it('EX-10 a poll finds a declined payment and runs the handlers of transaction.declined', async () => {
    await using both = await startBoth({});
    const { emulator, expectations } = both;
    const { transactionId } = emulator.createStkPush(payment);
    await expectations.expect({ reference, transactionId });
    emulator.fail(transactionId);
    await both.shows({
      ...BY_POLL,
      fulfilled: { by: 'poll', eventType: 'transaction.declined' },
    });
    await eventually(() => expect(handled).toEqual(['transaction.declined by poll: failed']));
    expect(emulator.deliveries()).toEqual([]);
  });

  it.each<[string, FaultPlan['api']]>([
    ['404', { notFound: {} }],
    ['503', { error: {} }],
    ['an incomplete response', { truncate: {} }],
  ])(
    'EX-06 polls that get %s have the result unknown, and a later poll finds the payment',
    async (_, api = {}) => {
      await using both = await startBoth({ delivery: { off: true }, api }, LATER);
      const { emulator, expectations } = both;
      const { transactionId } = emulator.createStkPush(payment);
      await expectations.expect({ reference, transactionId });
      emulator.complete(transactionId);
      expect(await expectations.askNow({ reference })).toBe(1);
      await both.shows({ state: 'waiting', lastPoll: { result: 'unknown' }, polls: 1 });
      expect(handled).toEqual([]);
      emulator.setFaults({ delivery: { off: true } });
      await eventually(async () => expect(await expectations.askNow({ reference })).toBe(1));
      await both.shows(BY_POLL);
      await eventually(() => expect(handled).toEqual(['transaction.completed by poll']));
    },
  );

  it('EX-06 a poll finds a transaction that the service did not show for a while after its creation', async () => {
    await using both = await startBoth({
      delivery: { off: true },
      api: { notFound: { forMs: 60_000 } },
    });
    const { clock, emulator, expectations } = both;
    await expectations.expect({ reference });
    const { transactionId } = emulator.createStkPush(payment);
    emulator.complete(transactionId);
    await both.shows({ transactionId: null, lastPoll: { result: 'unknown' } });
    clock.advance(60_000);
    await both.shows({ ...BY_POLL, transactionId });
    await eventually(() => expect(handled).toEqual(['transaction.completed by poll']));
  });

  it('EX-06 a poll that contradicts a completed payment is recorded, logged once, and changes nothing', async () => {
    await using both = await startBoth({}, LATER);
    const { emulator, app, expectations } = both;
    const { transactionId } = emulator.createStkPush(payment);
    await expectations.expect({ reference, transactionId });
    emulator.complete(transactionId);
    await emulator.idle();
    await both.shows({ state: 'fulfilled', fulfilled: { by: 'webhook' }, contradiction: null });
    emulator.setFaults({ api: { otherStatus: { next: 2 } } });
    await expectations.askNow({ reference });
    await both.shows({
      state: 'fulfilled',
      fulfilled: { by: 'webhook', eventType: 'transaction.completed' },
      lastPoll: { result: 'contradiction' },
      contradiction: expect.stringContaining('transaction.declined'),
    });
    await eventually(async () => expect(await expectations.askNow({ reference })).toBe(1));
    await both.shows({ polls: 2, lastPoll: { result: 'contradiction' } });
    await eventually(async () => expect(await expectations.askNow({ reference })).toBe(1));
    await both.shows({ polls: 3, lastPoll: { result: 'event' } });
    expect(handled).toEqual(['transaction.completed by webhook']);
    expect(app.log.matching(/contradicts the inbox/)).toHaveLength(1);
  });

  it('EX-09 find() finds a payment whose id is not known, and only payments of the company of the expectation', async () => {
    await using both = await startBoth({ delivery: { off: true } }, LATER);
    const { emulator, expectations } = both;
    emulator.createStkPush({ ...payment, companyId: 'other' });
    emulator.createStkPush({ ...payment, environment: 'production' });
    await expectations.expect({ reference });
    await expectations.askNow({ reference });
    await both.shows({ transactionId: null, lastPoll: { result: 'unknown' } });
    const { transactionId } = emulator.createStkPush(payment);
    emulator.complete(transactionId);
    await eventually(async () => expect(await expectations.askNow({ reference })).toBe(1));
    await both.shows({ ...BY_POLL, transactionId, polls: 2 });
    await eventually(() => expect(handled).toEqual(['transaction.completed by poll']));
  });

  it('EX-04 payments of two companies with the same reference are found with the access token of each company', async () => {
    await using both = await startBoth({ delivery: { off: true } });
    const { emulator, expectations } = both;
    emulator.setFault('delivery', 'off', true, 'other');
    const own = emulator.createStkPush(payment);
    const theirs = emulator.createStkPush({ ...payment, companyId: 'other' });
    await expectations.expect({ reference, transactionId: own.transactionId });
    await expectations.expect({ reference, company: 'other' });
    emulator.complete(theirs.transactionId);
    emulator.fail(own.transactionId);
    await both.shows({ ...BY_POLL, transactionId: theirs.transactionId }, 'other');
    await both.shows({ ...BY_POLL, transactionId: own.transactionId });
    await eventually(() =>
      expect(handled.toSorted()).toEqual([
        'transaction.completed by poll',
        'transaction.declined by poll: failed',
      ]),
    );
  });

  it('EX-07 a payment that completes long after its expectation became overdue still fulfils the expectation', async () => {
    await using both = await startBoth({}, [1]);
    const { clock, emulator, expectations } = both;
    const { transactionId } = emulator.createStkPush(payment);
    emulator.completeLater(transactionId, 86_400_000);
    await expectations.expect({ reference, transactionId });
    await both.shows({ state: 'overdue', lastPoll: { result: 'pending' }, polls: 1 });
    await eventually(() => expect(handled).toEqual(['overdue']));
    clock.advance(86_400_000);
    await emulator.idle();
    await both.shows({ state: 'fulfilled', fulfilled: { by: 'webhook' } });
    expect(handled).toEqual(['overdue', 'transaction.completed by webhook']);
  });
});
