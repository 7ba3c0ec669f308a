import { Injectable } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PaymentExpectations, PaymentInbox, PaymentsSetup, ThrottledLog } from 'nestjs-payments';
import type { SetupCheck, StoredEvent, StoredExpectation } from 'nestjs-payments';
import { ConsoleException } from './console-exception.filter.js';
import { consoleInvalid } from './console-options.js';
import { printable } from './operator-name.js';

/** Errors that mean a bug or an invalid request. All other errors come from the driver of the store. */
const PROGRAM_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError, ConsoleException];

/**
 * An expectation, with the amount and the currency of the event that fulfilled it. Both are `null` if there is no such
 * event.
 */
export type ShownExpectation = StoredExpectation & Pick<StoredEvent, 'amount' | 'currency'>;

/** The application's inbox and expectations. Any module of the application may import `PaymentsModule`. */
@Injectable()
export class ConsoleInbox implements OnModuleInit {
  #inbox: PaymentInbox | undefined;
  #expectations: PaymentExpectations | undefined;

  constructor(
    private readonly modules: ModuleRef,
    private readonly log: ThrottledLog,
  ) {}

  /** @throws PaymentsError `options_invalid` if the application has no inbox. */
  onModuleInit(): void {
    try {
      this.#inbox = this.modules.get(PaymentInbox, { strict: false });
      this.#expectations = this.modules.get(PaymentExpectations, { strict: false });
    } catch {
      throw consoleInvalid(
        'the application has no inbox. Import PaymentsModule.forRoot() or forRootAsync() in any of its modules.',
      );
    }
  }

  /**
   * Runs an operation of the inbox. Rethrows errors of the types in {@link PROGRAM_ERRORS}.
   *
   * @throws ConsoleException 503 if the store is not reachable.
   */
  async call<T>(operation: (inbox: PaymentInbox) => Promise<T>): Promise<T> {
    if (this.#inbox === undefined) throw new Error('The application is not initialised yet.');
    return this.#reach(operation(this.#inbox));
  }

  /** The application's `PaymentExpectations`; `null` if the option `reconcile` is not set. */
  get expectations(): PaymentExpectations | null {
    return this.#expectations?.enabled ? this.#expectations : null;
  }

  /** @throws ConsoleException 404 if the option `reconcile` is not set, and the same errors as {@link call}. */
  async callExpectations<T>(
    operation: (expectations: PaymentExpectations) => Promise<T>,
  ): Promise<T> {
    const { expectations } = this;
    if (expectations === null) {
      throw new ConsoleException(
        404,
        'The application has no expectations: set the option "reconcile" of PaymentsModule.',
      );
    }
    return this.#reach(operation(expectations));
  }

  /** Returns a page of expectations. @throws the same errors as {@link callExpectations} */
  async listExpectations(
    query: Parameters<PaymentExpectations['list']>[0],
  ): Promise<{ expectations: ShownExpectation[]; next: string | null }> {
    const { expectations, next } = await this.callExpectations((them) => them.list(query));
    const found = new Map<string, Pick<StoredEvent, 'amount' | 'currency'>>();
    for (const [company, some] of Map.groupBy(expectations, (one) => one.company)) {
      const ids = some.flatMap(({ fulfilled }) => fulfilled?.eventId ?? []);
      if (ids.length === 0) continue;
      const { events } = await this.call((inbox) => inbox.list({ company, ids, limit: 1000 }));
      for (const { id, amount, currency } of events) {
        found.set(`${company}\n${id}`, { amount, currency });
      }
    }
    const none = { amount: null, currency: null };
    const shown = expectations.map((one) => ({
      ...one,
      ...(found.get(`${one.company}\n${one.fulfilled?.eventId}`) ?? none),
    }));
    return { expectations: shown, next };
  }

  /** Runs one check of the setup. The check `webhook` sends a test webhook. */
  async checkSetup(only: SetupCheck['name'], company?: string): Promise<SetupCheck[]> {
    const setup = this.modules.get(PaymentsSetup, { strict: false });
    const checks: SetupCheck[] = [];
    const selected = company === undefined ? {} : { company };
    for await (const check of setup.check({ only, sendTest: true, ...selected })) {
      checks.push(check);
    }
    return checks;
  }

  async #reach<T>(result: Promise<T>): Promise<T> {
    try {
      return await result;
    } catch (error) {
      if (PROGRAM_ERRORS.some((type) => error instanceof type)) throw error;
      const cause = error instanceof Error ? error.message : 'The thrown value is not an Error.';
      this.log.warn('outage', `The console cannot reach the inbox. ${printable(cause)}`);
      throw new ConsoleException(
        503,
        "The inbox is not reachable. See the application's log for the cause, and try again in a moment.",
        { cause: error },
      );
    }
  }
}
