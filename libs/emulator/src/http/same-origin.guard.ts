import { isIP } from 'node:net';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { ForbiddenException, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../companies/webhook-url.js';
import { EnvironmentAddress } from './environment-address.js';

/**
 * Rejects requests from web pages of other origins. Without this guard, any web page in a developer's browser could pay
 * invoices or read credentials. The control token does not prevent this: on a loopback address, the controls require no
 * token, and on other addresses, a browser adds the token to every request automatically.
 */
@Injectable()
export class SameOriginGuard implements CanActivate {
  constructor(private readonly address: EnvironmentAddress) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
    const authority = request.headers.host ?? '';
    if (!this.#isKnownHost(authority)) {
      throw new ForbiddenException(
        `the emulator does not serve the controls at ${authority}; set publicUrl to that address`,
      );
    }
    const foreignOrigin = origin !== undefined && !this.#origins(authority).includes(origin);
    // A link from the shop to the checkout page is allowed. A form that another site sends is a navigation too, but its
    // method is POST.
    const isLink = mode === 'navigate' && request.method === 'GET';
    const foreignFetch = (site === 'cross-site' || site === 'same-site') && !isLink;
    if (foreignOrigin || foreignFetch) {
      throw new ForbiddenException('the controls reject requests from pages of other origins');
    }
    return true;
  }

  /** Accepts known host names only. Another site can make its own name resolve to this address (DNS rebinding). */
  #isKnownHost(authority: string): boolean {
    const hostname = URL.parse(`http://${authority}`)?.hostname ?? '';
    return (
      isLoopback(hostname) ||
      isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 ||
      hostname === this.address.hostname ||
      hostname === URL.parse(this.address.url)?.hostname
    );
  }

  #origins(authority: string): (string | undefined)[] {
    return [`http://${authority}`, URL.parse(this.address.url)?.origin];
  }
}
