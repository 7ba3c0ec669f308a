import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { badRequest, ConsoleException } from './console-exception.filter.js';

/** Maximum size of a body that the console reads itself, in bytes. */
const MAX_BODY_BYTES = 1024 ** 2;

/**
 * The fields of a request that the console reads, on Express and Fastify. The option `who` receives the adapter's own
 * request object.
 */
export interface ConsoleRequest {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly url: string;
  /** Path and query as they were sent, even if a router of Express has removed its own prefix from `url`. */
  readonly originalUrl?: string;
  readonly headers: IncomingHttpHeaders;
  /** Parameters of the route, decoded. */
  readonly params?: Readonly<Record<string, string>>;
  /** The body, as the application's body parser set it. */
  readonly body?: unknown;
  /** IP address of the client. If the application trusts the proxy, this is the address that the proxy forwarded. */
  readonly ip?: string;
  readonly socket: { readonly remoteAddress?: string };
  /** The user, if a guard or middleware of the application has set one. */
  readonly user?: unknown;
}

/** Returns the path of the request, as it was sent. */
export function pathOf(request: ConsoleRequest): string {
  return splitUrl(request)[0];
}

/**
 * Returns the fields of the query, independent of the parser that the application uses for its own routes. An empty
 * value counts as missing, because a form sends an empty value for an empty field.
 *
 * @throws ConsoleException 400 if a field is given more than once.
 */
export function queryOf(request: ConsoleRequest): Record<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(splitUrl(request)[1])) {
    if (fields.has(name)) {
      const shown = JSON.stringify(name.slice(0, 40));
      throw badRequest(`${shown} is in the query more than once: send it once.`);
    }
    fields.set(name, value);
  }
  return Object.fromEntries([...fields].filter(([, value]) => value !== ''));
}

/** Returns a header that is given exactly once; `undefined` if the header is missing or is given more than once. */
export function headerOf({ headers }: ConsoleRequest, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Returns the parsed JSON of the body. The application may parse bodies (the usual case), keep them as bytes or text,
 * or not read them (`bodyParser: false` on Express).
 *
 * @throws ConsoleException 400 if the body is not JSON, 413 if it is larger than 1 MiB.
 */
export async function jsonBodyOf(request: ConsoleRequest): Promise<unknown> {
  const { body } = request;
  if (body !== undefined && typeof body !== 'string' && !Buffer.isBuffer(body)) return body;
  const text = body ?? (await unreadTextOf(request as unknown as Readable));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text.toString());
  } catch {
    throw badRequest('The body is not JSON.');
  }
}

/** Reads a body that the application has not read. Returns `undefined` on Fastify, or if the body was already read. */
async function unreadTextOf(stream: Readable): Promise<Buffer | undefined> {
  if (typeof stream.read !== 'function' || stream.readableDidRead) return undefined;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.byteLength;
    if (length > MAX_BODY_BYTES) {
      throw new ConsoleException(413, 'The body is larger than 1 MiB: select fewer events.');
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function splitUrl({ originalUrl, url }: ConsoleRequest): [path: string, query: string] {
  const [path = '', ...query] = (originalUrl ?? url).split('?');
  return [path, query.join('?')];
}
