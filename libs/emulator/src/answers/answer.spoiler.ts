import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SpoiltAnswer } from '../faults/answer.fault.js';

type Payload = string | Buffer | Readable | null | undefined;

/** Spoils answers on their way out, after the request took effect: Fastify's `onSend`. */
export class AnswerSpoiler {
  readonly #marked = new WeakMap<FastifyRequest, SpoiltAnswer>();

  /** The answer to this request is to be spoilt. */
  mark(request: FastifyRequest, spoil: SpoiltAnswer): void {
    this.#marked.set(request, spoil);
  }

  onSend(
    request: FastifyRequest,
    reply: FastifyReply,
    payload: unknown,
    done: (error: null, payload?: unknown) => void,
  ): void {
    const spoil = this.#marked.get(request);
    switch (spoil?.kind) {
      case 'reset':
        return resetConnection(reply);
      case 'truncate':
        return truncate(reply, payload as Payload);
      case 'oversize':
        return done(null, pad(reply, payload as Payload, spoil.bytes, spoil.encoding));
      case 'status':
      case undefined:
        return done(null, payload);
    }
  }
}

/** Ends the connection with a reset and no answer. */
export function resetConnection(reply: FastifyReply): void {
  reply.hijack();
  reply.raw.socket?.resetAndDestroy();
}

/** Announces the whole answer, sends half of it and hangs up. */
function truncate(reply: FastifyReply, payload: Payload): void {
  const body = toBuffer(payload);
  reply.hijack();
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
  reply.raw.writeHead(reply.statusCode, { 'content-length': body.length });
  // Hanging up before the half is on the wire would lose it, and with it the status line.
  reply.raw.write(body.subarray(0, Math.floor(body.length / 2)), () => reply.raw.destroy());
}

/** The answer as a JSON object with padding, made as it is sent: its size costs no memory. */
function pad(
  reply: FastifyReply,
  payload: Payload,
  bytes: number,
  encoding: 'identity' | 'gzip',
): Readable {
  const body = toBuffer(payload).toString('utf8').trim();
  const start = body.startsWith('{') && body.length > 2 ? `${body.slice(0, -1)},` : '{';
  const padding = Math.max(0, bytes - Buffer.byteLength(`${start}"padding":""}`));
  const stream = Readable.from(pieces(start, padding), { objectMode: false });
  reply.removeHeader('content-length');
  reply.header('content-type', 'application/json; charset=utf-8');
  if (encoding === 'identity') {
    reply.header('content-length', Buffer.byteLength(`${start}"padding":""}`) + padding);
    return stream;
  }
  reply.header('content-encoding', 'gzip');
  return stream.pipe(createGzip());
}

function* pieces(start: string, padding: number): Generator<Buffer> {
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
