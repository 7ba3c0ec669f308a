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

/** A host that is not public: nothing was sent to it. */
export class PrivateHostError extends Error {
  override readonly name = 'PrivateHostError';

  constructor(hostname: string) {
    super(`the webhook URL ${PRIVATE_WEBHOOK} (host ${hostname})`);
  }
}

/** What {@link publicFetch} needs; the defaults are the machine's. */
export interface PublicHosts {
  readonly lookup?: LookupAll | undefined;
  readonly isPublic?: (address: string) => boolean;
}

/** Whether every address of a host is public. A name that does not resolve is no problem yet. */
export async function isPublicHost(
  hostname: string,
  { lookup = systemLookup, isPublic = isPublicAddress }: PublicHosts = {},
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
 * A `fetch` for deliveries that connects to public addresses only. It resolves a host name once and connects to the
 * addresses that it checked, so a name whose address changes in between leads nowhere else. It follows no redirect. Of the answer's
 * headers it keeps `Content-Type`.
 */
export function publicFetch(hosts: PublicHosts = {}): typeof globalThis.fetch {
  const { lookup = systemLookup, isPublic = isPublicAddress } = hosts;
  const checked: LookupFunction = (hostname, options, callback) => {
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
      // An address is not looked up.
      if (isIP(address) !== 0 && !isPublic(address)) throw new PrivateHostError(url.hostname);
      const send = url.protocol === 'https:' ? requestHttps : requestHttp;
      const request = send(url, {
        method: init.method,
        headers: init.headers as Record<string, string>,
        signal: init.signal ?? undefined,
        agent: false,
        lookup: checked,
      });
      request.on('error', reject);
      request.on('response', (response) => {
        const { statusCode: status = 0, headers } = response;
        const type = headers['content-type'];
        const body = [204, 205, 304].includes(status) ? null : Readable.toWeb(response);
        if (body === null) response.resume();
        try {
          const shown = type === undefined ? {} : { 'content-type': type };
          resolve(new Response(body as ReadableStream | null, { status, headers: shown }));
        } catch (error) {
          // A status above 599.
          request.destroy();
          reject(error);
        }
      });
      request.end(init.body);
    });
}
