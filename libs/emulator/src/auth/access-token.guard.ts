import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { createParamDecorator, Injectable, UnauthorizedException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Company } from '../companies/company.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';

const BEARER = /^bearer +([^\s,]+)$/i;

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

/**
 * Reads the token of a request from `Authorization` or `x-auth-token`. In both headers, the prefix `Bearer` is
 * required.
 *
 * Returns undefined if the request has neither header, if one of them is malformed, or if they contain different
 * tokens. The service does not document how it treats two different tokens. The emulator rejects the request, so that
 * the client's bug becomes visible.
 */
export function readBearerToken(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | undefined {
  const sent = [headers['authorization'], headers['x-auth-token']].filter(
    (header) => header !== undefined,
  );
  const tokens = new Set(sent.map((header) => BEARER.exec(String(header))?.[1]));
  return tokens.size === 1 ? [...tokens][0] : undefined;
}
