import { Catch, HttpException, Injectable, Logger } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { ResponseWriter } from './response-writer.js';

/** An error of the console. The message is for the operator, and names the cause and the fix. */
export class ConsoleException extends HttpException {
  constructor(status: number, message: string, options?: { cause?: unknown }) {
    super({ error: message }, status, options);
    this.message = message;
  }
}

export function badRequest(message: string): ConsoleException {
  return new ConsoleException(400, message);
}

/** Responds to the console's own exceptions. The application's filters respond to all other exceptions. */
@Catch(ConsoleException)
@Injectable()
export class PageExceptionFilter implements ExceptionFilter {
  constructor(protected readonly responses: ResponseWriter) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<unknown>();
    // Do nothing if a guard has already responded, or if an interceptor fails after the response was sent.
    if (this.responses.isSent(response)) return;
    this.responses.protect(response);
    const { status, message } = this.describe(error);
    this.responses.json(response, status, { error: message });
  }

  protected describe(error: unknown): { status: number; message: string } {
    const exception = error as ConsoleException;
    return { status: exception.getStatus(), message: exception.message };
  }
}

/**
 * Exception filter of the API. The response to every exception, including the exceptions of guards, is `{ "error": …
 * }`.
 */
@Catch()
@Injectable()
export class ApiExceptionFilter extends PageExceptionFilter {
  readonly #logger = new Logger('PaymentsConsole');

  protected override describe(error: unknown): { status: number; message: string } {
    if (error instanceof ConsoleException) return super.describe(error);
    if (error instanceof HttpException && error.getStatus() < 500) {
      return { status: error.getStatus(), message: error.message.split('\n')[0]!.slice(0, 300) };
    }
    this.#logger.error(
      error instanceof Error
        ? error.stack
        : 'A request to the console failed: the thrown value is not an Error.',
    );
    return { status: 500, message: "The console failed. See the application's log for the cause." };
  }
}
