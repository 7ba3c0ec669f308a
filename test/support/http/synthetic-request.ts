import { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import type { INestApplication } from '@nestjs/common';
import type { HttpResponse } from './http-exchange.js';

/** A request without a connection, as the adapters of serverless platforms create it. */
export interface SyntheticRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The chunks of the stream. */
  readonly body: Uint8Array;
  /** The socket; `undefined` for none. Default: one like that of `serverless-http`. */
  readonly socket?: unknown;
  /** Other properties of the request, which replace the default ones. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Passes a synthetic request directly to the application, not through its server. Resolves with the response. */
export async function sendSynthetic(
  app: INestApplication,
  synthetic: SyntheticRequest,
): Promise<HttpResponse> {
  const { path, headers, body, fields } = synthetic;
  const socket = 'socket' in synthetic ? synthetic.socket : socketStub();
  const request = new IncomingMessage(socket as never);
  Object.assign(request, { complete: true, method: 'POST', url: path, httpVersion: '1.1' });
  Object.defineProperty(request, 'headers', { value: { ...headers }, writable: true });
  request._read = () => {
    request.push(body);
    request.push(null);
  };
  for (const [name, value] of Object.entries(fields ?? {})) {
    Object.defineProperty(request, name, { value, writable: true });
  }
  const response = new ServerResponse(request);
  const wire = new PassThrough();
  response.assignSocket(wire as never);
  const responded = new Promise((resolve) => response.once('finish', resolve));
  const instance = app.getHttpAdapter().getInstance() as Listener & { routing?: Listener };
  (instance.routing ?? instance)(request, response);
  await responded;
  const [, text = ''] = String(wire.read()).split('\r\n\r\n');
  return { status: response.statusCode, body: JSON.parse(text) } as HttpResponse;
}

function socketStub(): unknown {
  return { encrypted: true, readable: false, remoteAddress: '1.2.3.4', destroy: () => {} };
}
