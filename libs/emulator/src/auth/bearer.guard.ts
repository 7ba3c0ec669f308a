import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { Inject, Injectable, UnauthorizedException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Company } from '../companies/company.record.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import { readBearerToken } from './bearer.header.js';

/** A request whose token has been checked. */
export interface CallerRequest extends FastifyRequest {
  caller?: Company;
}

/** Lets in calls with a working token of this host, in either header, and tells whose it is. */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<CallerRequest>();
    const token = readBearerToken(request.headers);
    const company =
      token === undefined ? undefined : await this.core.issuer.verify(token, this.host.environment);
    if (!company) {
      throw new UnauthorizedException(
        `no working ${this.host.environment} token in Authorization or x-auth-token`,
      );
    }
    request.caller = company;
    return true;
  }
}
