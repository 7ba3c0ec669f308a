import type { Server } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { COMPANIES } from '../companies/companies.js';
import type { Companies } from '../companies/companies.js';
import { DEFAULT_COMPANY } from '../companies/company.js';
import type { SigningKey } from '../companies/company.js';
import { WebhookRoutes } from '../webhook/webhook-routes.js';
import { sendInMemory } from './in-memory-request.js';
import { signedRequest } from './signed-request.js';
import type { DeliveryBody } from './signed-request.js';
import { webhookPath } from './webhook-path.js';

/** How {@link deliver} sends an event. */
export interface DeliverOptions {
  /** Id of the company the event is for. Default: the application's one company. */
  company?: string;
  /** Secret to sign with. Default: the company's current webhook secret, from the application's own options. */
  secret?: string;
  /** Path to post to. Needed only if the application has several webhook routes, or one with other parameters. */
  path?: string;
  /** Headers to add or replace, in any case; `undefined` removes one. */
  headers?: Readonly<Record<string, string | undefined>>;
}

/** The application's response. */
export interface DeliveryResponse {
  /** 200 if the delivery was accepted. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed if it is JSON, else text; for example `{ received: true, status: 'stored', id }`. */
  readonly body: unknown;
}

/**
 * Signs an event and posts it to the application's own webhook route, with global prefix, URI version and
 * `webhookPath`. The request passes the real HTTP server and its middleware. The application need not listen:
 * `app.init()` is enough, and `deliver()` calls it if the test has not.
 *
 * With the memory inbox the response comes after the handlers have run. With a durable inbox they run in the
 * background: wait with `settled(app)`.
 *
 * @param event a `paymentEvent()`, or the text or bytes of a whole body, which are signed as they are.
 * @throws TypeError if the application does not know the company, or if its webhook path is ambiguous.
 * @example
 * ```ts
 * const event = paymentEvent('transaction.completed', { externalReference: 'order-1' });
 * expect((await deliver(app, event)).status).toBe(200);
 * expect((await deliver(app, event, { secret: 'wrong' })).status).toBe(401);
 * ```
 */
export async function deliver(
  app: INestApplication,
  event: DeliveryBody,
  options: DeliverOptions = {},
): Promise<DeliveryResponse> {
  const { company, headers = {} } = options;
  await app.init();
  await ready(app);
  const secret = options.secret ?? (await signingKey(app, company ?? DEFAULT_COMPANY));
  const path = options.path ?? webhookPath(app.get(WebhookRoutes, { strict: false }), company);
  const request = signedRequest(event, { secret, path });
  const response = await sendInMemory(app.getHttpServer() as Server, {
    ...request,
    headers: merge(request.headers, headers),
  });
  return { ...response, body: parse(response.body.toString()) };
}

/** Fastify answers 404 until its plugins are loaded. */
async function ready(app: INestApplication): Promise<void> {
  const adapter = app.getHttpAdapter();
  if (adapter.getType() !== 'fastify') return;
  await (adapter.getInstance() as { ready(): Promise<unknown> }).ready();
}

async function signingKey(app: INestApplication, id: string): Promise<SigningKey> {
  const company = await app.get<Companies>(COMPANIES, { strict: false }).find(id);
  const key = company?.signingKeys[0];
  if (key !== undefined) return key;
  throw new TypeError(
    `The application has no company "${id}". Give the id of one that it has as the option "company", or a "secret".`,
  );
}

function merge(
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
