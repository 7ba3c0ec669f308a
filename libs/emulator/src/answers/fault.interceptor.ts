import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { HttpException, Inject, Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Observable } from 'rxjs';
import { defer, mergeMap, of } from 'rxjs';
import type { CallerRequest } from '../auth/bearer.guard.js';
import { WaitingRoom } from '../clock/waiting.room.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import { AnswerSpoiler, resetConnection } from './answer.spoiler.js';

/**
 * Lets a company's faults strike an answer: of the token endpoint, whose company is the one named
 * in Basic, or of a call with a token.
 */
@Injectable()
export class FaultInterceptor implements NestInterceptor {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
    @Inject(AnswerSpoiler) private readonly spoiler: AnswerSpoiler,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<CallerRequest>();
    const caller = request.caller;
    const company =
      caller ?? this.core.tokens.identify(request.headers.authorization, this.host.environment);
    if (!company) return next.handle();
    const fault = this.core.faults.onAnswer(company.companyId, caller ? 'api' : 'token');
    const pause = new WaitingRoom(this.core.options.clock);
    return defer(() => pause.wait(fault.slowMs, this.core.signal)).pipe(
      mergeMap(() => {
        const { spoil } = fault;
        if (!spoil) return next.handle();
        const reply = http.getResponse<FastifyReply>();
        if (spoil.kind === 'status') {
          if (spoil.retryAfter !== undefined) reply.header('retry-after', spoil.retryAfter);
          throw new HttpException('a fault of the emulator struck', spoil.status);
        }
        if (spoil.kind === 'reset' && spoil.when === 'before') {
          resetConnection(reply);
          return of(undefined);
        }
        this.spoiler.mark(request, spoil);
        return next.handle();
      }),
    );
  }
}
