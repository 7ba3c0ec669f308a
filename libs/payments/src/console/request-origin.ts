import { isIPv4 } from 'node:net';
import { ConsoleRefusal } from './console-refusal.js';
import { headerOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';
import { isForwardingHeader } from './forwarding-headers.js';

/**
 * For a console without a guard: only this machine, by address and by the name it was asked under, since a
 * stranger's name may be pointed at 127.0.0.1 (DNS rebinding).
 *
 * @throws ConsoleRefusal 403.
 */
export function refuseFarClient(request: ConsoleRequest): void {
  const near =
    isLoopbackAddress(request.socket.remoteAddress) &&
    isLoopbackName(hostOf(request, 'http:')?.hostname) &&
    !Object.keys(request.headers).some(isForwardingHeader);
  if (near) return;
  throw new ConsoleRefusal(
    403,
    'Without a guard the console answers only a browser on this machine, asked for as localhost and through no ' +
      'proxy. Give PaymentsConsoleModule.register() a guard.',
  );
}

/**
 * A browser says itself where a request comes from. Which of the site's pages could be forged is what is asked
 * here, so "same-site", another subdomain, is foreign too.
 *
 * @throws ConsoleRefusal 403.
 */
export function refuseForeignPage(request: ConsoleRequest): void {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw new ConsoleRefusal(
      403,
      'The request comes from a page of another site. Open the console itself.',
    );
  }
  const { origin } = request.headers;
  if (origin === undefined) return;
  // Of the scheme only the browser knows: TLS may have ended at a proxy.
  const page = URL.canParse(origin) ? new URL(origin) : undefined;
  const host = page && hostOf(request, page.protocol)?.host;
  if (page !== undefined && page.host !== '' && page.host === host) return;
  throw new ConsoleRefusal(
    403,
    'The request comes from a page of another host than it was sent to. Where a proxy stands between, have it ' +
      'pass on the Host header.',
  );
}

/**
 * What no form and no script of another site can send without asking first.
 *
 * @throws ConsoleRefusal 403, or 415.
 */
export function refuseForgedPost(request: ConsoleRequest): void {
  if (headerOf(request, 'x-payments-console') !== '1') {
    throw new ConsoleRefusal(403, 'An action needs the header "x-payments-console: 1".');
  }
  const type = headerOf(request, 'content-type')?.split(';')[0]!.trim().toLowerCase();
  if (type !== 'application/json') {
    throw new ConsoleRefusal(415, 'An action needs a JSON body: "content-type: application/json".');
  }
}

function hostOf(request: ConsoleRequest, protocol: string): URL | undefined {
  // HTTP/2 names it otherwise.
  const host = headerOf(request, 'host') ?? headerOf(request, ':authority');
  if (host === undefined || /[/?#@\\\s]/.test(host)) return undefined;
  const url = `${protocol}//${host}`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const four = address.replace(/^::ffff:/i, '');
  return address === '::1' || (isIPv4(four) && four.startsWith('127.'));
}

function isLoopbackName(name: string | undefined): boolean {
  return (
    name !== undefined &&
    (name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.')))
  );
}
