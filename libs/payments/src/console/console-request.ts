import type { IncomingHttpHeaders } from 'node:http';

/** What the console reads of a request, of Express or of Fastify. `who` is given the adapter's own object. */
export interface ConsoleRequest {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly url: string;
  /** The same, where a router of Express has taken its own prefix away from `url`. */
  readonly originalUrl?: string;
  readonly headers: IncomingHttpHeaders;
  /** Parameters of the route, decoded. */
  readonly params?: Readonly<Record<string, string>>;
  /** What the application's parser made of the body. */
  readonly body?: unknown;
  /** Address of the client, as far as the application trusts its proxies. */
  readonly ip?: string;
  readonly socket: { readonly remoteAddress?: string };
  /** What a guard or a middleware of the application knows of who asks. */
  readonly user?: unknown;
}

/** What stands before the query, as it was sent. */
export function pathOf(request: ConsoleRequest): string {
  return splitUrl(request)[0];
}

/** The query as it was sent, whatever parser the application uses for its own routes. */
export function queryOf(request: ConsoleRequest): URLSearchParams {
  return new URLSearchParams(splitUrl(request)[1]);
}

/** A header that may stand once; `undefined` where it does not, or stands more often. */
export function headerOf({ headers }: ConsoleRequest, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

function splitUrl({ originalUrl, url }: ConsoleRequest): [path: string, query: string] {
  const [path = '', ...query] = (originalUrl ?? url).split('?');
  return [path, query.join('?')];
}
