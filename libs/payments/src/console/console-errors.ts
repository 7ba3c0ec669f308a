import { Catch, HttpException, Inject, Injectable, Logger } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { ConsoleAnswers } from './console-answers.js';
import { ConsoleRefusal } from './console-refusal.js';

/** Answers the console's own refusals; what else is thrown goes to the application's filters. */
@Catch(ConsoleRefusal)
@Injectable()
export class RefusalFilter implements ExceptionFilter {
  constructor(@Inject(ConsoleAnswers) protected readonly answers: ConsoleAnswers) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<unknown>();
    // A guard may have answered itself, and an interceptor may fail on an answer that is on its way.
    if (this.answers.isSent(response)) return;
    this.answers.protect(response);
    const { status, message } = this.tell(error);
    this.answers.json(response, status, { error: message });
  }

  protected tell(error: unknown): { status: number; message: string } {
    const { message } = error as ConsoleRefusal;
    return { status: (error as ConsoleRefusal).getStatus(), message };
  }
}

/** Answers whatever is thrown, what the application's guards throw included, in the one form its page reads. */
@Catch()
@Injectable()
export class DataErrorFilter extends RefusalFilter {
  readonly #logger = new Logger('PaymentsConsole');

  protected override tell(error: unknown): { status: number; message: string } {
    if (error instanceof ConsoleRefusal) return super.tell(error);
    if (error instanceof HttpException && error.getStatus() < 500) {
      return { status: error.getStatus(), message: error.message.split('\n')[0]!.slice(0, 300) };
    }
    this.#logger.error(error instanceof Error ? error.stack : 'A request failed with no error.');
    const message = "The console failed; the application's log says why.";
    return { status: 500, message };
  }
}
