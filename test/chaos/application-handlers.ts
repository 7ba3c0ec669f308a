import { setTimeout } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { fixed, OnPaymentEvent, OnPaymentOverdue } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, PaymentOverdueEvent } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { PostgresTransaction } from 'nestjs-payments/postgres';
import type { ApplicationSetup } from './application-protocol.js';
import type { HandlerAction } from './event-plan.js';
import { Journal } from './journal.js';

export const SETUP = Symbol('SETUP');

type Transaction = SqliteTransaction | PostgresTransaction;
type Event = PaymentEvent<string, object>;
/** The data of each event. */
interface Data {
  readonly transactionId: string;
  readonly actions?: Record<string, HandlerAction>;
}
type Context = PaymentEventContext<Transaction>;

/** Time limit of the handler `limited`, in milliseconds. */
const LIMIT_MS = 1000;

/**
 * The maximum time for which the action `wait` waits, in milliseconds. It is less than the time limit of an attempt.
 */
const WAIT_MS = 25_000;

/** Stores the effect of an attempt. */
const INSERT = 'INSERT INTO effect (handler, event, transaction_id, attempt) VALUES';

/** The handlers of both versions of the application. */
@Injectable()
export class Handlers {
  #attempts = 0;
  readonly #proceed = Promise.withResolvers<void>();

  constructor(
    @Inject(SETUP) private readonly setup: ApplicationSetup,
    @Inject(Journal) private readonly journal: Journal,
  ) {}

  @OnPaymentEvent('transaction.*', { name: 'book' })
  book(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }

  @OnPaymentEvent('*', { name: 'audit' })
  audit(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }

  @OnPaymentEvent('transaction.completed', { name: 'notify', concurrency: 3 })
  notify(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }

  @OnPaymentEvent('limited.*', { name: 'limited', timeoutMs: LIMIT_MS, concurrency: 2 })
  limited(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }

  /** The events of this handler kill the process in each attempt, so the handler has few attempts. */
  @OnPaymentEvent('poison.*', { name: 'poison', retry: fixed([50, 50]) })
  poison(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }

  @OnPaymentEvent('transaction.declined', { name: 'declined' })
  declined(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }

  /** The effect stores the reference as its transaction, because the payment may have no transaction. */
  @OnPaymentOverdue({ name: 'overdue' })
  overdue(event: PaymentOverdueEvent, context: Context): Promise<void> {
    return this.handle({ ...event, data: { transactionId: event.data.reference } }, context);
  }

  /** Lets waiting handlers continue. Handlers that start later do not wait. */
  proceed(): void {
    this.#proceed.resolve();
  }

  protected async handle(event: Event, context: Context): Promise<void> {
    const { handler, signal } = context;
    const attempt = `${this.journal.name}/${(this.#attempts += 1)}`;
    const { transactionId, actions } = event.data as Data;
    this.journal.write({
      kind: 'attempt-started',
      attempt,
      handler,
      event: event.id,
      transaction: transactionId,
      number: context.attempt,
    });
    signal.addEventListener('abort', () => {
      this.journal.write({ kind: 'attempt-aborted', attempt, reason: String(signal.reason) });
    });
    const action = actions?.[handler];
    try {
      if (action === 'crash') this.#crash(attempt);
      if (context.attempt === 1 || action === 'wait') await this.#beforeCommit(action);
      await context.commit((tx) =>
        this.#writeEffect(tx, [handler, event.id, transactionId, attempt], attempt),
      );
      if (action === 'crash-after-commit') this.#crash(attempt);
      if (action === 'fail-after-commit') throw new Error('The handler fails after its commit.');
      this.journal.write({ kind: 'attempt-ended', attempt, error: null });
    } catch (error) {
      this.journal.write({ kind: 'attempt-ended', attempt, error: String(error) });
      throw error;
    }
  }

  async #beforeCommit(action: HandlerAction | undefined): Promise<void> {
    switch (action) {
      case 'slow':
        await setTimeout(100 + Math.random() * 400);
        break;
      case 'outlast-lease':
        await setTimeout(this.setup.leaseMs * 1.5);
        break;
      case 'wait':
        await Promise.race([this.#proceed.promise, setTimeout(WAIT_MS, undefined, { ref: false })]);
        break;
      case 'exceed-time-limit':
        await setTimeout(LIMIT_MS * 1.5);
        break;
      case 'hang':
        await new Promise(() => {});
        break;
      case 'fail':
        throw new Error('The handler fails in its first attempt.');
      case 'crash':
      case 'crash-after-commit':
      case 'fail-after-commit':
      case undefined:
    }
  }

  /** This is not an async function, because the work of a commit on SQLite must be synchronous. */
  #writeEffect(tx: Transaction, values: string[], attempt: string): Promise<void> | undefined {
    const record = (): void => this.journal.write({ kind: 'effect-written', attempt });
    if (!('prepare' in tx)) return tx.query(`${INSERT} ($1, $2, $3, $4)`, values).then(record);
    tx.prepare(`${INSERT} (?, ?, ?, ?)`).run(...values);
    record();
    return undefined;
  }

  #crash(attempt: string): void {
    this.journal.write({ kind: 'process-killed', attempt });
    process.kill(process.pid, 'SIGKILL');
  }
}

/** The second version of the application has one more handler. */
@Injectable()
export class NewHandlers extends Handlers {
  @OnPaymentEvent('transaction.completed', { name: 'points' })
  points(event: Event, context: Context): Promise<void> {
    return this.handle(event, context);
  }
}
