import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { PRIVATE_WEBHOOK } from '../companies/webhook-url.js';
import { isPublicAddress } from './public-address.js';

/** Resolves a host name to all its addresses, as `dns.lookup` does with `all: true`. */
export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** An error about a host that is not public. The emulator has sent nothing to this host. */
export class PrivateHostError extends Error {
  override readonly name = 'PrivateHostError';

  constructor(hostname: string) {
    super(`the webhook URL ${PRIVATE_WEBHOOK} (host ${hostname})`);
  }
}

/** Dependencies of {@link publicFetch}. Defaults: the system's lookup, and {@link isPublicAddress}. */
export interface PublicFetchOptions {
  readonly lookup?: LookupAll | undefined;
  readonly isPublic?: (address: string) => boolean;
}

/** Whether all addresses of a host are public. Returns true for a host name that cannot be resolved yet. */
export async function isPublicHost(
  hostname: string,
  { lookup = systemLookup, isPublic = isPublicAddress }: PublicFetchOptions = {},
): Promise<boolean> {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0) return isPublic(address);
  return new Promise((resolve) => {
    lookup(address, { all: true }, (error, addresses) =>
      resolve(error !== null || addresses.every((each) => isPublic(each.address))),
    );
  });
}

/**
 * Creates a `fetch` function that connects to public addresses only. The function resolves a host name once and
 * connects to the addresses that it has checked, so that DNS rebinding has no effect. The function follows no
 * redirects. The responses that it returns have only the header `Content-Type`.
 */
export function publicFetch(options: PublicFetchOptions = {}): typeof globalThis.fetch {
  const { lookup = systemLookup, isPublic = isPublicAddress } = options;
  const checkedLookup: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => isPublic(address))) {
        return callback(new PrivateHostError(hostname), []);
      }
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
  return (input, init = {}) =>
    new Promise((resolve, reject) => {
      const url = new URL(input);
      const address = url.hostname.replace(/^\[|\]$/g, '');
      // Node does not call `lookup` for an IP address.
      if (isIP(address) !== 0 && !isPublic(address)) throw new PrivateHostError(url.hostname);
      const send = url.protocol === 'https:' ? requestHttps : requestHttp;
      const request = send(url, {
        method: init.method,
        headers: init.headers as Record<string, string>,
        signal: init.signal ?? undefined,
        agent: false,
        lookup: checkedLookup,
      });
      request.on('error', reject);
      request.on('response', (response) => {
        const { statusCode: status = 0, headers } = response;
        const type = headers['content-type'];
        const body = [204, 205, 304].includes(status) ? null : Readable.toWeb(response);
        if (body === null) response.resume();
        try {
          const kept = type === undefined ? {} : { 'content-type': type };
          resolve(new Response(body as ReadableStream | null, { status, headers: kept }));
        } catch (error) {
          // `Response` does not accept a status above 599.
          request.destroy();
          reject(error);
        }
      });
      request.end(init.body);
    });
}
