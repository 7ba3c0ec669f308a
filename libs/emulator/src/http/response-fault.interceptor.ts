import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { HttpException, Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Observable } from 'rxjs';
import { defer, mergeMap, of } from 'rxjs';
import type { AuthenticatedRequest } from '../auth/access-token.guard.js';
import { EmulatorCore } from '../emulator-core.js';
import { Delays } from '../runtime/delays.js';
import { EnvironmentAddress } from './environment-address.js';
import { resetConnection, ResponseFaultInjector } from './response-fault-injector.js';

/**
 * Applies the response faults of a company to calls with an access token, and to requests for a token. For a token
 * request, the client id in the Basic header determines the company.
 */
@Injectable()
export class ResponseFaultInterceptor implements NestInterceptor {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
    private readonly injector: ResponseFaultInjector,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<AuthenticatedRequest>();
    const { core } = this;
    const { authorization } = request.headers;
    const company =
      request.company ?? core.tokenExchange.identify(authorization, this.address.environment);
    if (!company) return next.handle();
    const { delayMs, effect } = core.faults.forResponse(
      company.companyId,
      request.company ? 'api' : 'token',
    );
    const delays = new Delays(core.options.clock);
    return defer(() => delays.wait(delayMs, core.signal)).pipe(
      mergeMap(() => {
        if (!effect) return next.handle();
        const reply = http.getResponse<FastifyReply>();
        if (effect.kind === 'status') {
          if (effect.retryAfter !== undefined) reply.header('retry-after', effect.retryAfter);
          throw new HttpException('a fault of the emulator caused this response', effect.status);
        }
        if (effect.kind === 'reset' && effect.when === 'before') {
          resetConnection(reply);
          return of(undefined);
        }
        this.injector.schedule(request, effect);
        return next.handle();
      }),
    );
  }
}
