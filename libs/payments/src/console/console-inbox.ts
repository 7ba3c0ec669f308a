import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PaymentInbox } from '../inbox/payment-inbox.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { consoleInvalid } from './console-options.js';
import { ConsoleRefusal } from './console-refusal.js';
import { seenOnly } from './operator-name.js';
import { ThrottledLog } from '../errors/throttled-log.js';

/**
 * The application's inbox, wherever in the application `PaymentsModule` is imported: the console's own imports
 * are for its guards.
 */
@Injectable()
export class ConsoleInbox implements OnModuleInit {
  readonly #logger = new Logger('PaymentsConsole');
  #found:
    | {
        readonly inbox: PaymentInbox;
        readonly runtime: PaymentsRuntime;
        readonly log: ThrottledLog;
      }
    | undefined;

  constructor(@Inject(ModuleRef) private readonly modules: ModuleRef) {}

  /** @throws PaymentsError `options_invalid` where the application has no inbox. */
  onModuleInit(): void {
    const runtime = this.#get<PaymentsRuntime>(PAYMENTS_RUNTIME);
    this.#found = {
      inbox: this.#get(PaymentInbox),
      runtime,
      log: new ThrottledLog(this.#logger, runtime),
    };
  }

  get runtime(): PaymentsRuntime {
    return this.#it.runtime;
  }

  /**
   * Asks the inbox something.
   *
   * @throws ConsoleRefusal 503 where its store cannot be reached; what is wrong in the program itself as it is.
   */
  async ask<T>(question: (inbox: PaymentInbox) => Promise<T>): Promise<T> {
    try {
      return await question(this.#it.inbox);
    } catch (error) {
      // A store rejects with whatever its driver throws; a program's own mistakes have classes of their own.
      if (isMistake(error)) throw error;
      const told = error instanceof Error ? error.message : 'it threw what is no error';
      this.#it.log.warn('outage', `The console cannot reach the inbox. ${seenOnly(told)}`);
      throw new ConsoleRefusal(
        503,
        "The inbox is not reachable; the application's log says why. Try again in a moment.",
        { cause: error },
      );
    }
  }

  get #it() {
    if (this.#found === undefined) throw new Error('The application is not initialised yet.');
    return this.#found;
  }

  #get<T>(token: symbol | (new (...args: never[]) => T)): T {
    try {
      return this.modules.get<T>(token, { strict: false });
    } catch {
      throw consoleInvalid(
        'there is no inbox to show. Import PaymentsModule.forRoot() or forRootAsync() in the application too; ' +
          'in which module does not matter.',
      );
    }
  }
}

function isMistake(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError, ConsoleRefusal].some(
    (mistake) => error instanceof mistake,
  );
}
