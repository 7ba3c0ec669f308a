import { isIP } from 'node:net';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { Inject, ForbiddenException, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../companies/webhook-url.js';
import { EmulatorHost } from '../emulator.host.js';

/**
 * Keeps web pages of other origins away from the controls, which need no token on a loopback address, and whose token a
 * browser sends by itself elsewhere: a page that a developer has open must not pay invoices or read credentials.
 */
@Injectable()
export class SameOriginGuard implements CanActivate {
  constructor(@Inject(EmulatorHost) private readonly host: EmulatorHost) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
    const authority = request.headers.host ?? '';
    if (!this.#isOurs(authority)) {
      throw new ForbiddenException(
        `the controls are not served as ${authority}; name that address in publicUrl`,
      );
    }
    const foreignOrigin = origin !== undefined && !this.#origins(authority).includes(origin);
    // A link to the checkout page is a navigation, and may come from the shop; a form that is sent is
    // one too, and may not.
    const link = mode === 'navigate' && request.method === 'GET';
    const foreignFetch = (site === 'cross-site' || site === 'same-site') && !link;
    if (foreignOrigin || foreignFetch) {
      throw new ForbiddenException('the controls take no requests from pages of other origins');
    }
    return true;
  }

  /** A name that another site made point here would be its origin too: only known names count. */
  #isOurs(authority: string): boolean {
    const hostname = URL.parse(`http://${authority}`)?.hostname ?? '';
    return (
      isLoopback(hostname) ||
      isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 ||
      hostname === this.host.hostname ||
      hostname === URL.parse(this.host.url)?.hostname
    );
  }

  #origins(authority: string): (string | undefined)[] {
    return [`http://${authority}`, URL.parse(this.host.url)?.origin];
  }
}
