import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A delivery as it arrived. */
export interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly event: { id: string; eventType: string; data: Record<string, unknown> };
}

type Answer = (received: Received, response: ServerResponse) => void;

/** A plain webhook receiver that keeps what it got. It answers 200 unless told otherwise. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  answer: Answer = (_, response) => response.end();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((listening) => {
      receiver.#server.listen(0, '127.0.0.1', listening);
    });
    return receiver;
  }

  /** The first delivery that arrived. */
  get first(): Received {
    const [first] = this.received;
    if (!first) throw new Error('nothing has arrived');
    return first;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/webhooks/payments`;
  }

  /** Answers with these, one after the other, then with the last again and again. */
  answerWith(...statuses: number[]): void {
    let next = 0;
    this.answer = (_, response) => {
      response.statusCode = statuses[Math.min(next++, statuses.length - 1)] ?? 200;
      response.end();
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method, url: path, headers } = request;
    const received = { method, path, headers, body, event: parse(body) };
    this.received.push(received);
    this.answer(received, response);
  }
}

/** Waits, turn by turn of the event loop, until something holds. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((turn) => setImmediate(turn));
}

function parse(body: Buffer): Received['event'] {
  try {
    return JSON.parse(body.toString('utf8')) as Received['event'];
  } catch {
    return { id: '', eventType: '', data: {} };
  }
}
