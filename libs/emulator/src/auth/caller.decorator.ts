import type { ExecutionContext } from '@nestjs/common';
import { createParamDecorator } from '@nestjs/common';
import type { CallerRequest } from './bearer.guard.js';

/** The company whose token the request carried. Behind `BearerGuard` only. */
export const Caller = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<CallerRequest>().caller,
);
