import type { Readable } from 'node:stream';
import { badRequest, ConsoleRefusal } from './console-refusal.js';
import type { ConsoleRequest } from './console-request.js';

const LIMIT_BYTES = 1024 ** 2;

/**
 * The JSON of a body, whether the application parses bodies (the usual case), keeps them as bytes or text, or
 * leaves them unread (`bodyParser: false` on Express).
 *
 * @throws ConsoleRefusal 400 where it is no JSON, 413 where it is larger than 1 MiB.
 */
export async function jsonBody(request: ConsoleRequest): Promise<unknown> {
  const { body } = request;
  if (typeof body === 'string' || Buffer.isBuffer(body)) return parse(body.toString());
  if (body !== undefined) return body;
  const stream = request as unknown as Readable;
  // Nobody parsed it, and on Fastify, or where somebody read it, there is nothing left to read.
  if (typeof stream.read !== 'function' || stream.readableDidRead) return undefined;
  return parse(await readText(stream));
}

async function readText(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.byteLength;
    if (length > LIMIT_BYTES) {
      throw new ConsoleRefusal(413, 'The body is larger than 1 MiB: pick fewer events at a time.');
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('The body is no JSON.');
  }
}
