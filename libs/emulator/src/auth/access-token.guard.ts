import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { createParamDecorator, Injectable, UnauthorizedException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Company } from '../companies/company.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { readBearerToken } from './bearer-token.js';

export interface AuthenticatedRequest extends FastifyRequest {
  company?: Company;
}

/** Accepts a request only if `Authorization` or `x-auth-token` contains a valid access token of this environment. */
@Injectable()
export class AccessTokenGuard implements CanActivate {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const { environment } = this.address;
    const token = readBearerToken(request.headers);
    const company =
      token === undefined ? undefined : await this.core.issuer.verify(token, environment);
    if (!company) {
      throw new UnauthorizedException(
        `the request has no valid ${environment} access token in Authorization or x-auth-token`,
      );
    }
    request.company = company;
    return true;
  }
}

/** Injects the company of the request's access token. Requires {@link AccessTokenGuard}. */
export const CallingCompany = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<AuthenticatedRequest>().company,
);
