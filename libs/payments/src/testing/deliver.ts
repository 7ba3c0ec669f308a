import type { Server } from 'node:http';
import { duplexPair } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import type { INestApplication } from '@nestjs/common';
import { COMPANIES, DEFAULT_COMPANY } from '../companies/company.js';
import type { Companies, SigningKey } from '../companies/company.js';
import { WebhookRoutes } from '../webhook/webhook-routes.js';
import { signedRequest } from './payment-event-builders.js';
import type { SignedRequest, WebhookBody } from './payment-event-builders.js';

/** Company, secret, path and headers of the request that {@link deliver} sends. */
export interface DeliverOptions {
  /** Id of the company that the event is for. Default: the application's only company. */
  company?: string;
  /** Secret to sign with. Default: the company's current webhook secret, from the application's own options. */
  secret?: string;
  /**
   * Path to post to. Needed only if the application has several webhook routes, or a route with path parameters other
   * than `:company`.
   */
  path?: string;
  /** Headers to add or replace; the case of a name does not matter. `undefined` removes a header. */
  headers?: Readonly<Record<string, string | undefined>>;
}

/** The application's response to a webhook request. */
export interface DeliverResponse {
  /** 200 if the application accepted the request. */
  readonly status: number;
  /** Headers of the response, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Body of the response: parsed if it is JSON, otherwise text. For example `{ received: true, status: 'stored', id }`.
   */
  readonly body: unknown;
}

/**
 * Signs an event and posts it to the application's own webhook route, including global prefix, URI version and
 * `webhookPath`. The request passes the real HTTP server and its middleware. The application does not have to listen:
 * `app.init()` is enough, and `deliver()` calls it if the test has not.
 *
 * With the memory inbox, the promise resolves after the handlers have run. With a durable inbox, the handlers run in the
 * background: wait for them with `settled(app)`.
 *
 * @param event a `paymentEvent()`, or a whole request body as text or bytes, which is signed unchanged.
 * @throws TypeError if the application does not have the company, or if its webhook path is ambiguous.
 * @example
 * ```ts
 * const event = paymentEvent('transaction.completed', { externalReference: 'order-1' });
 * expect((await deliver(app, event)).status).toBe(200);
 * expect((await deliver(app, event, { secret: 'wrong' })).status).toBe(401);
 * ```
 */
export async function deliver(
  app: INestApplication,
  event: WebhookBody,
  options: DeliverOptions = {},
): Promise<DeliverResponse> {
  const { company, headers = {} } = options;
  await app.init();
  await loadFastifyPlugins(app);
  const secret = options.secret ?? (await signingKey(app, company ?? DEFAULT_COMPANY));
  const path = options.path ?? webhookPath(app.get(WebhookRoutes, { strict: false }), company);
  const request = signedRequest(event, { secret, path });
  return sendInMemory(app.getHttpServer() as Server, {
    ...request,
    headers: mergeHeaders(request.headers, headers),
  });
}

/** Loads the plugins of Fastify, because Fastify responds with 404 to every request before its plugins are loaded. */
async function loadFastifyPlugins(app: INestApplication): Promise<void> {
  const adapter = app.getHttpAdapter();
  if (adapter.getType() !== 'fastify') return;
  await (adapter.getInstance() as { ready(): Promise<unknown> }).ready();
}

async function signingKey(app: INestApplication, id: string): Promise<SigningKey> {
  const company = await app.get<Companies>(COMPANIES, { strict: false }).find(id);
  const key = company?.signingKeys[0];
  if (key !== undefined) return key;
  throw new TypeError(
    `The application has no company "${id}". Set the option "company" to the id of a company of the application, or ` +
      'set the option "secret".',
  );
}

function mergeHeaders(
  defaults: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const merged = new Map<string, string>();
  for (const [name, value] of Object.entries({ ...defaults, ...changes })) {
    merged.delete(name.toLowerCase());
    if (value !== undefined) merged.set(name.toLowerCase(), value);
  }
  return Object.fromEntries(merged);
}

/**
 * Returns the path to which a company's webhook requests are posted: the path of the webhook endpoint or, with
 * `webhookPath: false`, of the application's own route under `WebhookGuard`. Includes global prefix and URI version.
 *
 * @param company if `undefined`, a path without the parameter `:company` has priority.
 * @throws TypeError if the application has no webhook route, or several routes that match.
 */
export function webhookPath(
  routes: Pick<WebhookRoutes, 'endpointPaths' | 'paths'>,
  company: string | undefined,
): string {
  const endpoint = routes.endpointPaths();
  const all = [...new Set(endpoint.length > 0 ? endpoint : routes.paths())];
  const named = all.filter((path) => /\/:company(?=\/|$)/.test(path));
  const plain = all.filter((path) => !named.includes(path));
  const preferred = company === undefined ? [plain, named] : [named, plain];
  const fitting = preferred.find((paths) => paths.length > 0) ?? [];
  const [path, ...others] = fitting.map((pattern) =>
    pattern.replace(/\/:company(?=\/|$)/, `/${encodeURIComponent(company ?? DEFAULT_COMPANY)}`),
  );
  if (path === undefined) {
    throw new TypeError(
      'The application has no webhook route: webhookPath is false, and no POST route has WebhookGuard.',
    );
  }
  if (others.length > 0 || /[:*{(]/.test(path)) {
    throw new TypeError(
      `deliver() cannot choose the path from ${fitting.join(', ')}. Set the option "path" to one of them, with its ` +
        'parameters filled in.',
    );
  }
  return path;
}

/**
 * Sends a POST request to an HTTP server that does not have to listen: the server gets one end of a stream in memory as a
 * new connection (https://nodejs.org/api/http.html#event-connection). The request does not pass an HTTP client, so tools
 * that intercept outgoing requests, such as msw and nock, do not see it.
 *
 * @throws Error if the server closes the connection without a response.
 */
async function sendInMemory(server: Server, request: SignedRequest): Promise<DeliverResponse> {
  const [client, socket] = duplexPair();
  const secure = server instanceof TlsServer;
  // Express and Fastify derive `request.ip` and `request.protocol` from these properties of the socket.
  const address = { remoteAddress: '127.0.0.1', remoteFamily: 'IPv4', remotePort: 50_000 };
  Object.assign(socket, address, { encrypted: secure });
  // In some versions of Node, the client's end of the stream stays open when the server destroys its end.
  socket.once('close', () => client.push(null));
  server.emit(secure ? 'secureConnection' : 'connection', socket);
  client.write(requestHead(request));
  client.write(request.body);
  return parseResponse(Buffer.concat((await client.toArray()) as Buffer[]));
}

/**
 * Returns the request line and the headers. The version is HTTP/1.0, so that the server sends the response without
 * chunks and then closes the connection.
 */
function requestHead({ path, headers, body }: SignedRequest): string {
  const fields = Object.entries({
    ...headers,
    Host: 'localhost',
    'Content-Length': body.byteLength,
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  return [`POST ${path} HTTP/1.0`, ...lines, '', ''].join('\r\n');
}

function parseResponse(bytes: Buffer): DeliverResponse {
  const end = bytes.indexOf('\r\n\r\n');
  const [start = '', ...fields] = bytes.toString('latin1', 0, Math.max(0, end)).split('\r\n');
  const status = Number(start.split(' ')[1]);
  if (!status) throw new Error('The application closed the connection without a response.');
  const headers = fields.map((field) => {
    const [name = '', ...value] = field.split(':');
    return [name.toLowerCase(), value.join(':').trim()];
  });
  const body = parseJson(bytes.toString('utf8', end + 4));
  return { status, headers: Object.fromEntries(headers), body };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
