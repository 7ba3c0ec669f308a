import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A received delivery. */
export interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly event: { id: string; eventType: string; data: Record<string, unknown> };
}

type Respond = (received: Received, response: ServerResponse) => void;

/** A webhook receiver that keeps all deliveries. It responds with 200 by default. */
export class WebhookReceiver implements AsyncDisposable {
  readonly received: Received[] = [];
  respond: Respond = (_, response) => response.end();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#receive(request, response));
  }

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    await new Promise<void>((listening) => {
      receiver.#server.listen(0, '127.0.0.1', listening);
    });
    return receiver;
  }

  /** The first received delivery. */
  get first(): Received {
    const [first] = this.received;
    if (!first) throw new Error('no delivery was received');
    return first;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/webhooks/payments`;
  }

  /** Responds with these statuses in order, then always with the last one. */
  respondWith(...statuses: number[]): void {
    let next = 0;
    this.respond = (_, response) => {
      response.statusCode = statuses[Math.min(next++, statuses.length - 1)] ?? 200;
      response.end();
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method, url: path, headers } = request;
    const received = { method, path, headers, body, event: parse(body) };
    this.received.push(received);
    this.respond(received, response);
  }
}

/** Computes the expected value of `X-Webhook-Signature`, independently of the emulator. */
export function signatureOf(body: Buffer, secret: string): string {
  return `sha512=${createHmac('sha512', secret).update(body).digest('hex')}`;
}

function parse(body: Buffer): Received['event'] {
  try {
    return JSON.parse(body.toString('utf8')) as Received['event'];
  } catch {
    return { id: '', eventType: '', data: {} };
  }
}
