import { HttpException } from '@nestjs/common';

/** A request the console answers with an error of its own. The message is for the operator: cause and mend. */
export class ConsoleRefusal extends HttpException {
  constructor(status: number, message: string, options?: { cause?: unknown }) {
    super({ error: message }, status, options);
    this.message = message;
  }
}

/** A body or query that is wrong. */
export function badRequest(message: string): ConsoleRefusal {
  return new ConsoleRefusal(400, message);
}
