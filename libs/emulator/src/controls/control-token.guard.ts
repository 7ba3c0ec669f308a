import type { CanActivate, ExecutionContext } from '@nestjs/common';
import {
  HttpException,
  Inject,
  Injectable,
  SetMetadata,
  UnauthorizedException,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EmulatorCore } from '../emulator.core.js';

const OPEN = 'payments-emulator:without-control-token';
const CHALLENGE = 'Basic realm="payments-emulator: any name, the control token as password"';

/** Exempts an endpoint under `/emulator` that merchants or their customers use. */
export const WithoutControlToken = (): MethodDecorator & ClassDecorator => SetMetadata(OPEN, true);

/** Demands the control token on every page and control under `/emulator`, if there is one. */
@Injectable()
export class ControlTokenGuard implements CanActivate {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const { headers, routeOptions } = http.getRequest<FastifyRequest>();
    // The service's own endpoints have their own credentials.
    if (!this.core.controlToken || !routeOptions.url?.startsWith('/emulator')) return true;
    const marked = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean | undefined>(OPEN, marked)) return true;
    const proof = this.core.controlToken.prove(headers.authorization);
    if (proof === 'right') return true;
    const reply = http.getResponse<FastifyReply>();
    if (proof === 'throttled') {
      void reply.header('retry-after', '60');
      throw new HttpException('too many wrong control tokens within a minute', 429);
    }
    void reply.header('www-authenticate', CHALLENGE);
    throw new UnauthorizedException(
      `${proof === 'wrong' ? 'the control token is wrong' : 'the control token is missing'}: send the one that payments-emulator printed at its start (or the controlToken option) as the password of HTTP Basic or in Authorization: Bearer`,
    );
  }
}
