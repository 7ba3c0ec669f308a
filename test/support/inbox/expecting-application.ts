import { describe } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  byStatus,
  memoryInbox,
  OnPaymentEvent,
  OnPaymentOverdue,
  PaymentExpectations,
  PaymentInbox,
  PaymentsApiService,
  PaymentsModule,
} from 'nestjs-payments';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentOverdueEvent,
  PaymentsModuleOptions,
  StoredExpectation,
} from 'nestjs-payments';
import { deliver, FakePaymentsApi, paymentEvent } from 'nestjs-payments/testing';
import { CapturedLog } from '../log/captured-log.js';
import { OPTIONS } from '../webhook/webhook-application.js';
import { onEachDurableInbox } from './durable-inboxes.js';
import type { DurableInbox, InboxData } from './durable-inboxes.js';
import { settled } from './settled.js';

/** The data of a test, on which one or more applications open an inbox. */
export type ExpectingData = Pick<InboxData, 'inbox'>;

/** Declares the same tests for the memory inbox and each kind of durable inbox. */
export function onEachInbox(
  promises: (data: () => Promise<ExpectingData>) => void,
  kinds?: readonly DurableInbox['kind'][],
): void {
  describe('on memory', () => promises(async () => MEMORY));
  onEachDurableInbox((durable) => promises(() => durable.data()), kinds);
}

/**
 * Declares the same tests for the memory inbox and SQLite only, because the store contract proves the part of each
 * store.
 */
export function onMemoryAndSqlite(promises: (data: () => Promise<ExpectingData>) => void): void {
  onEachInbox(promises, ['sqlite']);
}

/** Each application gets an inbox of its own. */
export const MEMORY: ExpectingData = { inbox: () => memoryInbox() };

/** Polls find completed and declined payments. No poll becomes due while a test runs, and none is postponed. */
export const RECONCILE = {
  interpret: byStatus({ complete: 'transaction.completed', declined: 'transaction.declined' }),
  schedule: [3_600_000, 7_200_000],
  maxPollsPerSecond: 1000,
};

/** The merchant's handlers. */
@Injectable()
class Books {
  /** The events that were handled, as `type transaction source`. */
  readonly booked: string[] = [];
  readonly overdue: PaymentOverdueEvent[] = [];
  /** Called by the handler of overdue payments. */
  onOverdue: () => void = () => {};
  /** How many events the handler of all types got. */
  all = 0;

  @OnPaymentEvent(['transaction.completed', 'transaction.declined'], { name: 'book' })
  book({ eventType, data }: PaymentEvent, { source }: PaymentEventContext): void {
    this.booked.push(`${eventType} ${String(data['transactionId'])} ${source}`);
  }

  @OnPaymentOverdue({ name: 'remind' })
  remind(event: PaymentOverdueEvent): void {
    this.overdue.push(event);
    this.onOverdue();
  }

  @OnPaymentEvent('*', { name: 'all' })
  count(): void {
    this.all += 1;
  }
}

/** A merchant's application that expects payments. The payments service is a fake, unless `api` is `null`. */
export class ExpectingApplication implements AsyncDisposable {
  private constructor(
    readonly app: INestApplication,
    readonly api: FakePaymentsApi,
    readonly log: CapturedLog,
  ) {}

  static async start(
    data: ExpectingData,
    options: Partial<PaymentsModuleOptions> = {},
    api: FakePaymentsApi | null = new FakePaymentsApi(),
  ): Promise<ExpectingApplication> {
    const base = options.companies ? { baseUrl: OPTIONS.baseUrl } : OPTIONS;
    const payments = { ...base, inbox: data.inbox(), reconcile: RECONCILE, ...options };
    const log = new CapturedLog();
    const builder = Test.createTestingModule({
      imports: [PaymentsModule.forRoot(payments)],
      providers: [Books],
    }).setLogger(log);
    if (api !== null) builder.overrideProvider(PaymentsApiService).useValue(api);
    const app = (await builder.compile()).createNestApplication();
    await app.init();
    return new ExpectingApplication(app, api ?? new FakePaymentsApi(), log);
  }

  get expectations(): PaymentExpectations {
    return this.app.get(PaymentExpectations);
  }

  get inbox(): PaymentInbox {
    return this.app.get(PaymentInbox);
  }

  get books(): Books {
    return this.app.get(Books);
  }

  /** Expects the payment `order-<n>` with the transaction `t-<n>`. */
  async expect(n: number | string, more: { dueBy?: Date; company?: string } = {}): Promise<void> {
    await this.expectations.expect({ reference: `order-${n}`, transactionId: `t-${n}`, ...more });
  }

  async find(n: number | string): Promise<StoredExpectation> {
    return (await this.expectations.get(`order-${n}`))!;
  }

  /** Polls the payment `order-<n>` now, and waits until the poll and the handlers of its event have ended. */
  async ask(n: number | string): Promise<StoredExpectation> {
    await this.expectations.askNow({ reference: `order-${n}` });
    await settled(this.app);
    return this.find(n);
  }

  /** Sets the service's response about the transaction `t-<n>`. */
  respond(n: number | string, ...responses: readonly [unknown, ...unknown[]]): void {
    this.api.respond('GET', `/v1/transactions/t-${n}`, ...(responses as [object]));
  }

  /** Sends the webhook request of a completed payment, and returns the status of the response. */
  async webhook(transactionId: string, externalReference = 'other', timestamp?: string) {
    const fields = timestamp === undefined ? {} : { timestamp };
    const event = paymentEvent(
      'transaction.completed',
      { transactionId, externalReference },
      fields,
    );
    return (await deliver(this.app, event)).status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.close();
  }
}
