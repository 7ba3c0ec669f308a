import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { PaymentsError } from '../payments.errors.js';
import { headerText } from './header-text.js';

/**
 * Rejects another content type than JSON, and an encoded body: the signature is over the bytes as sent, so nothing
 * here decodes them.
 *
 * @throws PaymentsError `content_type_unsupported` or `content_encoding_unsupported`.
 */
export function requirePlainJson(headers: IncomingHttpHeaders): void {
  // Node keeps the first of several values; an adapter may have kept them all.
  const [first] = [headers['content-type']].flat();
  const [type = ''] = (headerText(first) ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new PaymentsError(
      'content_type_unsupported',
      'A delivery has Content-Type application/json.',
    );
  }
  const encodings = (headerText(headers['content-encoding']) ?? '').split(',');
  if (!encodings.every((encoding) => /^(identity)?$/i.test(encoding.trim()))) {
    throw new PaymentsError(
      'content_encoding_unsupported',
      'A delivery has no Content-Encoding: its signature is over the bytes as sent.',
    );
  }
}

/** A body that is being read. */
export interface BodyReading {
  /**
   * All of it, byte for byte.
   *
   * @throws PaymentsError `payload_too_large`, as soon as that is known; what it was ended with; or what the
   *   stream failed with, where the sender went away.
   */
  readonly bytes: Promise<Buffer>;
  /** Ends it. Nothing happens where it has ended. */
  readonly end: (error: Error) => void;
}

/** Reads a request's body, of `limitBytes` at the most. */
export function readRawBody(
  stream: Readable,
  headers: IncomingHttpHeaders,
  limitBytes: number,
): BodyReading {
  const { promise: bytes, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer | string): void => {
    // A hook of the application may have put a stream of text in place of the request's own.
    const more = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    size += more.byteLength;
    if (size <= limitBytes) chunks.push(more);
    else end(tooLarge(limitBytes));
  };
  const onEnd = (): void => {
    stop();
    resolve(Buffer.concat(chunks, size));
  };
  const onClose = (): void => end(new Error('the sender closed the connection'));
  const end = (error: Error): void => {
    stop();
    // A stream that an application put in its place may fail yet, with nobody else listening.
    stream.on('error', () => {});
    reject(error);
  };
  const stop = (): void => {
    stream.off('data', onData).off('end', onEnd).off('error', end).off('close', onClose);
  };
  if (Number(headerText(headers['content-length']) ?? 0) > limitBytes) end(tooLarge(limitBytes));
  else if (stream.destroyed) onClose();
  else stream.on('data', onData).on('end', onEnd).on('error', end).on('close', onClose);
  return { bytes, end };
}

/** The error for a body over the limit. */
export function tooLarge(limitBytes: number): PaymentsError {
  return new PaymentsError(
    'payload_too_large',
    `The body is larger than ${limitBytes} bytes. If the service really sends more, raise "webhook.bodyLimitBytes".`,
  );
}
