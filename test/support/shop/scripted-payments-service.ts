import { createHmac, randomUUID } from 'node:crypto';
import { json, ScriptedService } from '../api/scripted-service.js';
import type { SeenRequest } from '../api/scripted-service.js';
import type { ShopSettings } from './running-shop.js';

const CLIENT_ID = 'merchant';
const CLIENT_SECRET = 'c1ient-s3cret';
const WEBHOOK_SECRET = 'whsec-of-the-scripted-service';

/** The data of a `transaction.completed` event. */
export interface CompletedData {
  transactionId: string;
  status: string;
  amount: number;
  accountReference: string;
  externalReference: string;
}

/**
 * A payments service with the documented endpoints only: the token endpoint and `GET /v1/transactions/{id}`, whose
 * response has only a status. Everything else is 404, unless a test sets `checkout`.
 */
export class ScriptedPaymentsService implements AsyncDisposable {
  /** Status of each transaction by its id. */
  readonly transactions = new Map<string, string>();
  /** The requests, as `METHOD path`. */
  readonly requests: string[] = [];
  /** Handles any other POST. */
  checkout: ((body: Record<string, unknown>) => Promise<unknown>) | undefined;
  readonly #tokens = new Set<string>();

  private constructor(private readonly service: ScriptedService) {
    service.onToken = service.onCall = (request, response) => {
      void this.#respond(request).then(([status, body]) => json(status, body)(request, response));
    };
  }

  static async start(): Promise<ScriptedPaymentsService> {
    return new ScriptedPaymentsService(await ScriptedService.start());
  }

  get settings(): ShopSettings {
    return {
      PAYMENTS_BASE_URL: this.service.baseUrl,
      PAYMENTS_CLIENT_ID: CLIENT_ID,
      PAYMENTS_CLIENT_SECRET: CLIENT_SECRET,
      PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
    };
  }

  /** Completes a transaction, which the API then returns. Returns the data of its event. */
  pay(externalReference: string, amount: number): CompletedData {
    const transactionId = randomUUID();
    this.transactions.set(transactionId, 'complete');
    return {
      transactionId,
      status: 'complete',
      amount,
      accountReference: 'acc',
      externalReference,
    };
  }

  /** Delivers an event. Resolves with the status of the response. */
  async deliver(url: string, data: object): Promise<number> {
    const eventType = 'transaction.completed';
    const timestamp = new Date().toISOString();
    const body = JSON.stringify({ id: randomUUID(), eventType, timestamp, data, metadata: {} });
    const signature = createHmac('sha512', WEBHOOK_SECRET).update(body).digest('hex');
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'Content-Type': 'application/json',
        'X-Webhook-Event': eventType,
        'X-Webhook-Signature': `sha512=${signature}`,
        'User-Agent': 'Scripted-Webhook/1.0',
      },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop();
  }

  async #respond(request: SeenRequest): Promise<[status: number, body: unknown]> {
    const body = JSON.parse(request.body || '{}') as Record<string, unknown>;
    const { method, path } = request;
    this.requests.push(`${method} ${path}`);
    const authorization = request.headers.authorization ?? '';
    if (method === 'POST' && path === '/v1/auth/token') return this.#issue(authorization, body);
    if (!this.#tokens.has(authorization)) return [401, {}];
    const [, id = ''] = /^\/v1\/transactions\/([^/]+)$/.exec(path) ?? [];
    const status = this.transactions.get(id);
    if (method === 'GET' && status !== undefined) return [200, { status }];
    if (method === 'POST' && this.checkout) return [200, await this.checkout(body)];
    return [404, {}];
  }

  #issue(authorization: string, body: Record<string, unknown>): [number, unknown] {
    const basic = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64');
    const valid = authorization === `Basic ${basic}`;
    if (!valid || body['grant_type'] !== 'client_credentials') return [401, {}];
    const token = randomUUID();
    this.#tokens.add(`Bearer ${token}`);
    return [200, { access_token: token, expires_in: '3599', token_type: 'Bearer' }];
  }
}
