import { Inject, Injectable, Logger } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { ConsoleAnswers } from './console-answers.js';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import type { ConsoleRefusal } from './console-refusal.js';
import type { ConsoleRequest } from './console-request.js';
import { ThrottledLog } from '../errors/throttled-log.js';
import { refuseFarClient, refuseForeignPage, refuseForgedPost } from './request-origin.js';

/** The first guard of every route of the console, before the application's: what needs no name to be refused. */
@Injectable()
export class ConsoleGate implements CanActivate {
  readonly #logger = new Logger('PaymentsConsole');
  #log: ThrottledLog | undefined;

  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    @Inject(ConsoleAnswers) private readonly answers: ConsoleAnswers,
    @Inject(ConsoleInbox) private readonly inbox: ConsoleInbox,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const request = http.getRequest<ConsoleRequest>();
    this.answers.protect(http.getResponse());
    this.#refuse('a client that is not on this machine', () => {
      if (this.options.guards.length === 0) refuseFarClient(request);
    });
    // The page and its files may be linked to from anywhere: they hold nothing, and frame nowhere.
    if (!Reflect.getMetadata(DATA, context.getHandler())) return true;
    this.#refuse('a request of another site', () => refuseForeignPage(request));
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      this.#refuse('a forged request', () => refuseForgedPost(request));
    }
    return true;
  }

  #refuse(thing: string, check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#log ??= new ThrottledLog(this.#logger, this.inbox.runtime);
      this.#log.warn(thing, `The console refused ${thing}. ${(error as ConsoleRefusal).message}`);
      throw error;
    }
  }
}

const DATA = Symbol('PAYMENTS_CONSOLE_DATA');

/** Marks a route that shows or changes what the inbox holds. */
export const Data = (): MethodDecorator => (_target, _name, descriptor) => {
  Reflect.defineMetadata(DATA, true, descriptor.value as object);
};
