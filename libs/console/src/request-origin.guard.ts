import { isIPv4 } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { ThrottledLog } from 'nestjs-payments';
import { ConsoleException } from './console-exception.filter.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { headerOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';
import { isForwardingHeader } from './forwarding-headers.js';
import { ResponseWriter } from './response-writer.js';

/**
 * First guard of the console page and its files. Accepts requests from pages of other sites, because the console page
 * and its files contain no data.
 */
@Injectable()
export class PageOriginGuard implements CanActivate {
  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    private readonly responses: ResponseWriter,
    private readonly log: ThrottledLog,
  ) {}

  /** @throws ConsoleException 403 if the console has no guard and the request does not come from this machine. */
  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    this.responses.protect(http.getResponse());
    this.check(http.getRequest<ConsoleRequest>());
    return true;
  }

  protected check(request: ConsoleRequest): void {
    if (this.options.guards.length > 0) return;
    this.logRejection('a client that is not on this machine', () => requireThisMachine(request));
  }

  protected logRejection(subject: string, check: () => void): void {
    try {
      check();
    } catch (error) {
      this.log.warn(
        subject,
        `The console rejected ${subject}. ${(error as ConsoleException).message}`,
      );
      throw error;
    }
  }
}

/** First guard of every route that shows or changes data. */
@Injectable()
export class ApiOriginGuard extends PageOriginGuard {
  /** @throws ConsoleException 403 if the request may be forged, or 415 if the body of an action is not JSON. */
  protected override check(request: ConsoleRequest): void {
    super.check(request);
    this.logRejection('a request from another site', () => requireSameOrigin(request));
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      this.logRejection('a forged request', () => requireUnforgeable(request));
    }
  }
}

/**
 * For a console without a guard, rejects a request that does not come from this machine. Checks the client's address
 * and the host name in the request, because the name of another site may resolve to 127.0.0.1 (DNS rebinding).
 */
function requireThisMachine(request: ConsoleRequest): void {
  const local =
    isLoopbackAddress(request.socket.remoteAddress) &&
    isLoopbackName(hostOf(request, 'http:')?.hostname) &&
    !Object.keys(request.headers).some(isForwardingHeader);
  if (local) return;
  throw new ConsoleException(
    403,
    'Without a guard, the console responds only to a browser on this machine that opens the console at localhost, ' +
      'without a proxy. Add a guard to PaymentsConsoleModule.register().',
  );
}

/** Rejects requests from pages of other origins. A page of another subdomain ("same-site") is another origin, too. */
function requireSameOrigin(request: ConsoleRequest): void {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw new ConsoleException(
      403,
      'The request comes from a page of another site. Open the console in the browser.',
    );
  }
  const { origin } = request.headers;
  if (origin === undefined) return;
  // Use the scheme that the browser sent: TLS may end at a proxy, so the scheme of the request may differ.
  const page = URL.canParse(origin) ? new URL(origin) : undefined;
  const host = page && hostOf(request, page.protocol)?.host;
  if (page !== undefined && page.host !== '' && page.host === host) return;
  throw new ConsoleException(
    403,
    'The host of the page differs from the host of the request. If there is a proxy, configure it to ' +
      'forward the Host header.',
  );
}

/**
 * Requires a header and a content type that no HTML form can send. A script of another site can send them only with a
 * CORS permission.
 */
function requireUnforgeable(request: ConsoleRequest): void {
  if (headerOf(request, 'x-payments-console') !== '1') {
    throw new ConsoleException(403, 'An action needs the header "x-payments-console: 1".');
  }
  const type = headerOf(request, 'content-type')?.split(';')[0]!.trim().toLowerCase();
  if (type !== 'application/json') {
    throw new ConsoleException(
      415,
      'An action needs a JSON body: "content-type: application/json".',
    );
  }
}

function hostOf(request: ConsoleRequest, protocol: string): URL | undefined {
  // HTTP/2 has the header `:authority` instead of `Host`.
  const host = headerOf(request, 'host') ?? headerOf(request, ':authority');
  if (host === undefined || /[/?#@\\\s]/.test(host)) return undefined;
  const url = `${protocol}//${host}`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const unmapped = address.replace(/^::ffff:/i, '');
  return address === '::1' || (isIPv4(unmapped) && unmapped.startsWith('127.'));
}

function isLoopbackName(name: string | undefined): boolean {
  return (
    name !== undefined &&
    (name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.')))
  );
}
