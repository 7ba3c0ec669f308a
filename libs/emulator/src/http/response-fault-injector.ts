import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ResponseEffect } from '../faults/response-faults.js';

type Payload = string | Buffer | Readable | null | undefined;

/** Changes responses in Fastify's `onSend` hook, after the request has taken effect. */
export class ResponseFaultInjector {
  readonly #scheduled = new WeakMap<FastifyRequest, ResponseEffect>();

  schedule(request: FastifyRequest, effect: ResponseEffect): void {
    this.#scheduled.set(request, effect);
  }

  onSend(
    request: FastifyRequest,
    reply: FastifyReply,
    payload: unknown,
    done: (error: null, payload?: unknown) => void,
  ): void {
    const effect = this.#scheduled.get(request);
    switch (effect?.kind) {
      case 'reset':
        return resetConnection(reply);
      case 'truncate':
        return truncate(reply, payload as Payload);
      case 'oversize':
        return done(null, pad(reply, payload as Payload, effect.bytes, effect.encoding));
      case 'status':
      case undefined:
        return done(null, payload);
    }
  }
}

export function resetConnection(reply: FastifyReply): void {
  reply.hijack();
  reply.raw.socket?.resetAndDestroy();
}

/** Sends headers that announce the full length of the body, then half of the body. Then closes the connection. */
function truncate(reply: FastifyReply, payload: Payload): void {
  const body = toBuffer(payload);
  reply.hijack();
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
  reply.raw.writeHead(reply.statusCode, { 'content-length': body.length });
  // Close the connection only after the first half is written. Otherwise, the status line and the first half could be
  // lost.
  reply.raw.write(body.subarray(0, Math.floor(body.length / 2)), () => reply.raw.destroy());
}

/**
 * Streams the response as a JSON object with padding. The padding is generated while the response is sent, so that it
 * is never in memory as a whole.
 */
function pad(
  reply: FastifyReply,
  payload: Payload,
  bytes: number,
  encoding: 'identity' | 'gzip',
): Readable {
  const body = toBuffer(payload).toString('utf8').trim();
  const start = body.startsWith('{') && body.length > 2 ? `${body.slice(0, -1)},` : '{';
  const padding = Math.max(0, bytes - Buffer.byteLength(`${start}"padding":""}`));
  const stream = Readable.from(chunksOf(start, padding), { objectMode: false });
  reply.removeHeader('content-length');
  reply.header('content-type', 'application/json; charset=utf-8');
  if (encoding === 'identity') {
    reply.header('content-length', Buffer.byteLength(`${start}"padding":""}`) + padding);
    return stream;
  }
  reply.header('content-encoding', 'gzip');
  return stream.pipe(createGzip());
}

function* chunksOf(start: string, padding: number): Generator<Buffer> {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  yield Buffer.from(`${start}"padding":"`);
  for (let left = padding; left > 0; left -= chunk.length) yield chunk.subarray(0, left);
  yield Buffer.from('"}');
}

function toBuffer(payload: Payload): Buffer {
  return Buffer.isBuffer(payload)
    ? payload
    : Buffer.from(typeof payload === 'string' ? payload : '');
}
