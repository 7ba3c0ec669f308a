import { setTimeout } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { fixed, OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { PostgresTransaction } from 'nestjs-payments/postgres';
import type { ApplicationSetup } from './application-protocol.js';
import type { HandlerAction } from './event-plan.js';
import { Journal } from './journal.js';

export const SETUP = Symbol('SETUP');

type Transaction = SqliteTransaction | PostgresTransaction;
type Event = PaymentEvent<string, object>;
/** What the run puts into each event. */
interface Data {
  readonly transactionId: string;
  readonly actions?: Record<string, HandlerAction>;
}
type Context = PaymentEventContext<Transaction>;

/** Time limit of the handler `limited`, in milliseconds. */
const LIMIT_MS = 1000;

/** For how long a run waits at most, in milliseconds: less than its time limit. */
const WAIT_MS = 25_000;

/** Writes one row of an effect in the transaction of a commit. */
const INSERT = 'INSERT INTO effect (handler, event, transaction_id, run) VALUES';

/** What all versions of the application do with events. */
@Injectable()
export class Handlers {
  #runs = 0;
  readonly #proceed = Promise.withResolvers<void>();

  constructor(
    @Inject(SETUP) private readonly setup: ApplicationSetup,
    @Inject(Journal) private readonly journal: Journal,
  ) {}

  @OnPaymentEvent('transaction.*', { name: 'book' })
  book(event: Event, context: Context): Promise<void> {
    return this.run(event, context);
  }

  @OnPaymentEvent('*', { name: 'audit' })
  audit(event: Event, context: Context): Promise<void> {
    return this.run(event, context);
  }

  @OnPaymentEvent('transaction.completed', { name: 'notify', concurrency: 3 })
  notify(event: Event, context: Context): Promise<void> {
    return this.run(event, context);
  }

  @OnPaymentEvent('limited.*', { name: 'limited', timeoutMs: LIMIT_MS, concurrency: 2 })
  limited(event: Event, context: Context): Promise<void> {
    return this.run(event, context);
  }

  /** Its events kill the process, so it has few attempts. */
  @OnPaymentEvent('poison.*', { name: 'poison', retry: fixed([50, 50]) })
  poison(event: Event, context: Context): Promise<void> {
    return this.run(event, context);
  }

  /** Ends the waits of runs, those to come included. */
  proceed(): void {
    this.#proceed.resolve();
  }

  protected async run(event: Event, context: Context): Promise<void> {
    const { handler, attempt, signal } = context;
    const run = `${this.journal.name}/${(this.#runs += 1)}`;
    const { transactionId, actions } = event.data as Data;
    this.journal.write({
      kind: 'start',
      run,
      handler,
      event: event.id,
      transaction: transactionId,
      attempt,
    });
    signal.addEventListener('abort', () => {
      this.journal.write({ kind: 'abort', run, reason: String(signal.reason) });
    });
    const action = actions?.[handler];
    try {
      if (action === 'die') this.#die(run);
      if (attempt === 1 || action === 'wait') await this.#before(action);
      await context.commit((tx) => this.#write(tx, [handler, event.id, transactionId, run], run));
      if (action === 'die-after') this.#die(run);
      if (action === 'fail-after') throw new Error('The handler fails after its commit.');
      this.journal.write({ kind: 'end', run, error: null });
    } catch (error) {
      this.journal.write({ kind: 'end', run, error: String(error) });
      throw error;
    }
  }

  async #before(action: HandlerAction | undefined): Promise<void> {
    switch (action) {
      case 'slow':
        await setTimeout(100 + Math.random() * 400);
        break;
      case 'long':
        await setTimeout(this.setup.leaseMs * 1.5);
        break;
      case 'wait':
        await Promise.race([this.#proceed.promise, setTimeout(WAIT_MS, undefined, { ref: false })]);
        break;
      case 'late':
        await setTimeout(LIMIT_MS * 1.5);
        break;
      case 'hang':
        await new Promise(() => {});
        break;
      case 'fail':
        throw new Error('The handler fails in its first attempt.');
      case 'die':
      case 'die-after':
      case 'fail-after':
      case undefined:
    }
  }

  /** Not an async function: on SQLite the work of a commit is synchronous. */
  #write(tx: Transaction, values: string[], run: string): Promise<void> | undefined {
    const worked = (): void => this.journal.write({ kind: 'worked', run });
    if (!('prepare' in tx)) return tx.query(`${INSERT} ($1, $2, $3, $4)`, values).then(worked);
    tx.prepare(`${INSERT} (?, ?, ?, ?)`).run(...values);
    worked();
    return undefined;
  }

  #die(run: string): void {
    this.journal.write({ kind: 'die', run });
    process.kill(process.pid, 'SIGKILL');
  }
}

/** What the second version does in addition. */
@Injectable()
export class NewHandlers extends Handlers {
  @OnPaymentEvent('transaction.completed', { name: 'points' })
  points(event: Event, context: Context): Promise<void> {
    return this.run(event, context);
  }
}
