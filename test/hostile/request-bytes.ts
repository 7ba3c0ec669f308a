import type { WebhookRequest } from './webhook-requests.ts';

/** The parts of a request's head. */
export interface Head {
  readonly path: string;
  readonly signature: string;
  /** The request line. Default: a POST request for `path`. */
  readonly requestLine?: string;
  /** Further header lines, sent unchanged. */
  readonly lines?: readonly string[];
}

/** A request's head, with the empty line at its end. */
export function head({
  path,
  signature,
  requestLine = `POST ${path} HTTP/1.1`,
  lines = [],
}: Head): string {
  return [
    requestLine,
    'Host: shop.example',
    'Content-Type: application/json',
    `X-Webhook-Signature: ${signature}`,
    ...lines,
    '',
    '',
  ].join('\r\n');
}

/** A whole request with Content-Length. */
export function withLength({ path, signature, body }: WebhookRequest): Buffer {
  const lines = [`Content-Length: ${body.length}`];
  return Buffer.concat([Buffer.from(head({ path, signature, lines })), body]);
}

/** A whole chunked request with chunks of `size` bytes. */
export function chunked({ path, signature, body }: WebhookRequest, size: number): Buffer {
  const parts: Buffer[] = [
    Buffer.from(head({ path, signature, lines: ['Transfer-Encoding: chunked'] })),
  ];
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

/** A request with a body of 1 MiB in chunks of one byte. Each string but the first and the last has 65,536 chunks. */
export function tinyChunkRequest(path: string, signature: string): string[] {
  const chunks = '1\r\nx\r\n'.repeat(65_536);
  const start = head({ path, signature, lines: ['Transfer-Encoding: chunked'] });
  return [start, ...Array.from({ length: 16 }, () => chunks), '0\r\n\r\n'];
}
