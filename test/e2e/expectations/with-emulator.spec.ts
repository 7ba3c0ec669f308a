import { beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { byStatus, OnPaymentEvent, PaymentExpectations } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, ReconcileOptions } from 'nestjs-payments';
import type { FaultPlan } from 'payments-emulator';
import { PaymentsEmulator } from 'payments-emulator';
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
  const emulator = await PaymentsEmulator.start({ faults });
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
});
