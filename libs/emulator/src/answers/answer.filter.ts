import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { Catch, HttpException, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EmulatorErrorCode } from '../emulator.errors.js';
import { EmulatorError, EmulatorInputError, messageOf } from '../emulator.errors.js';
import type { AnswerShapes } from './answer.shapes.js';

const STATUS: Record<EmulatorErrorCode, number> = {
  not_found: 404,
  conflict: 409,
  limit_reached: 409,
  closed: 503,
};

interface Described {
  readonly status: number;
  readonly message: string;
  readonly code?: string;
  readonly problems?: readonly string[];
}

/**
 * Answers what was thrown: in the emulator's own words under `/emulator/`, and in the configured
 * shape, which the service's page does not show, everywhere else.
 */
@Catch()
export class AnswerFilter implements ExceptionFilter {
  readonly #logger = new Logger('PaymentsEmulator');

  constructor(private readonly shapes: AnswerShapes) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const described = describe(error);
    if (described.status === 500) this.#logger.error(error);
    const { status, message, ...more } = described;
    const own = http.getRequest<FastifyRequest>().url.startsWith('/emulator');
    // A handler may have announced another type than that of the error.
    void reply
      .removeHeader('content-type')
      .status(status)
      .send(
        own ? { statusCode: status, message, ...more } : this.shapes.error({ status, message }),
      );
  }
}

function describe(error: unknown): Described {
  if (error instanceof EmulatorInputError) {
    return { status: 400, message: error.message, code: error.code, problems: error.problems };
  }
  if (error instanceof EmulatorError) {
    return { status: STATUS[error.code], message: error.message, code: error.code };
  }
  if (error instanceof HttpException) return { status: error.getStatus(), message: error.message };
  // Fastify's own errors, such as a body over the limit, carry their status.
  const status = (error as { statusCode?: unknown } | undefined)?.statusCode;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { status, message: messageOf(error) };
  }
  return { status: 500, message: 'the emulator failed; its log says why' };
}
