import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { Catch, HttpException, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EmulatorErrorCode } from '../emulator-errors.js';
import { EmulatorError, EmulatorInputError, messageOf } from '../emulator-errors.js';
import type { ResponseShapes } from './response-shapes.js';

const STATUS: Record<EmulatorErrorCode, number> = {
  not_found: 404,
  conflict: 409,
  limit_reached: 409,
  closed: 503,
};

interface ErrorDescription {
  readonly status: number;
  readonly message: string;
  readonly code?: string;
  readonly problems?: readonly string[];
}

/**
 * Responds to errors. Under `/emulator/`, the body has the emulator's own form. Under `/v1`, the body has the form that
 * the option `shapes` sets. The service does not document its error bodies.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  readonly #logger = new Logger('PaymentsEmulator');

  constructor(private readonly shapes: ResponseShapes) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const description = describe(error);
    if (description.status === 500) this.#logger.error(error);
    const { status, message, ...details } = description;
    const isControl = http.getRequest<FastifyRequest>().url.startsWith('/emulator');
    // The handler may have set the content type of another response before it threw.
    void reply
      .removeHeader('content-type')
      .status(status)
      .send(
        isControl
          ? { statusCode: status, message, ...details }
          : this.shapes.error({ status, message }),
      );
  }
}

function describe(error: unknown): ErrorDescription {
  if (error instanceof EmulatorInputError) {
    return { status: 400, message: error.message, code: error.code, problems: error.problems };
  }
  if (error instanceof EmulatorError) {
    return { status: STATUS[error.code], message: error.message, code: error.code };
  }
  if (error instanceof HttpException) return { status: error.getStatus(), message: error.message };
  // Fastify's own errors, such as a body above the limit, have a status code.
  const status = (error as { statusCode?: unknown } | undefined)?.statusCode;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { status, message: messageOf(error) };
  }
  return { status: 500, message: 'internal error of the emulator; see the log of the emulator' };
}
