import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { Injectable, SetMetadata, UnauthorizedException } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EmulatorCore } from '../emulator-core.js';

const EXEMPT = 'payments-emulator:without-control-token';
const CHALLENGE = 'Basic realm="payments-emulator: any name, the control token as password"';

/** Marks an endpoint under `/emulator` that requires no control token, because merchants or their customers use it. */
export const WithoutControlToken = (): MethodDecorator & ClassDecorator =>
  SetMetadata(EXEMPT, true);

/**
 * If the emulator has a control token, requires it for all endpoints under `/emulator`, except those that {@link
 * WithoutControlToken} marks.
 */
@Injectable()
export class ControlTokenGuard implements CanActivate {
  constructor(
    private readonly core: EmulatorCore,
    private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const { headers, routeOptions } = http.getRequest<FastifyRequest>();
    // The service's endpoints under /v1 require an access token instead.
    if (!this.core.controlToken || !routeOptions.url?.startsWith('/emulator')) return true;
    const targets = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean | undefined>(EXEMPT, targets)) return true;
    const result = this.core.controlToken.verify(headers.authorization);
    if (result === 'valid') return true;
    const reply = http.getResponse<FastifyReply>();
    void reply.header('www-authenticate', CHALLENGE);
    throw new UnauthorizedException(
      `${result === 'wrong' ? 'the control token is wrong' : 'the control token is missing'}: send the token that payments-emulator printed at its start (or the controlToken option), as the password of HTTP Basic or in Authorization: Bearer`,
    );
  }
}
