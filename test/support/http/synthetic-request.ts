import { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import type { INestApplication } from '@nestjs/common';
import type { Answer } from './http-exchange.js';

/** A request that no connection carried, as the adapters of serverless platforms make them. */
export interface SyntheticRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  /** What the stream gives. */
  readonly body: Uint8Array;
  /** The socket; `undefined` for none. Default: one like that of `serverless-http`. */
  readonly socket?: unknown;
  /** What else is set on the request, over what this sets. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Gives a synthetic request to the application, past its server, and resolves with the answer. */
export async function sendSynthetic(
  app: INestApplication,
  synthetic: SyntheticRequest,
): Promise<Answer> {
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
  const answered = new Promise((resolve) => response.once('finish', resolve));
  const instance = app.getHttpAdapter().getInstance() as Listener & { routing?: Listener };
  (instance.routing ?? instance)(request, response);
  await answered;
  const [, text = ''] = String(wire.read()).split('\r\n\r\n');
  return { status: response.statusCode, body: JSON.parse(text) } as Answer;
}

function socketStub(): unknown {
  return { encrypted: true, readable: false, remoteAddress: '1.2.3.4', destroy: () => {} };
}
