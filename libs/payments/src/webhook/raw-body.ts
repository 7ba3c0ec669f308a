import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { PaymentsError } from '../payments.errors.js';

/**
 * Refuses what no delivery is: another content type than JSON, or an encoded body. The signature is over the
 * bytes as sent (section 6 of the service's page), so nothing here would decode them.
 *
 * @throws PaymentsError `content_type_unsupported` or `content_encoding_unsupported`.
 */
export function requirePlainJson(headers: IncomingHttpHeaders): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new PaymentsError(
      'content_type_unsupported',
      'A delivery has Content-Type application/json.',
    );
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.trim().toLowerCase() !== 'identity') {
    throw new PaymentsError(
      'content_encoding_unsupported',
      'A delivery has no Content-Encoding: its signature is over the bytes as sent.',
    );
  }
}

/**
 * Reads a request's body, byte for byte, and stops as soon as it is known to be too large, or `cancel` says so.
 *
 * @throws PaymentsError `payload_too_large`; the reason of `cancel`; or what the stream failed with, where the
 *   sender went away.
 */
export async function readRawBody(
  stream: Readable,
  headers: IncomingHttpHeaders,
  limitBytes: number,
  cancel: AbortSignal,
): Promise<Buffer> {
  if (Number(headers['content-length'] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = (settle: () => void): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      cancel.removeEventListener('abort', onCancel);
      settle();
    };
    const onData = (chunk: Buffer | string): void => {
      // A hook of the application may have put a stream of text in place of the request's own.
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      size += bytes.byteLength;
      if (size <= limitBytes) chunks.push(bytes);
      else stop(() => reject(tooLarge(limitBytes)));
    };
    const onEnd = (): void => stop(() => resolve(Buffer.concat(chunks, size)));
    const onError = (error: Error): void => stop(() => reject(error));
    const onClose = (): void => onError(new Error('the sender closed the connection'));
    const onCancel = (): void => onError(cancel.reason as Error);
    if (stream.destroyed) return onClose();
    cancel.addEventListener('abort', onCancel);
    stream.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
  });
}

function tooLarge(limitBytes: number): PaymentsError {
  return new PaymentsError(
    'payload_too_large',
    `The body is larger than ${limitBytes} bytes. Where the service really sends more, raise "bodyLimitBytes".`,
  );
}
