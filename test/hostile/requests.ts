import type { Delivery } from './deliveries.ts';

/** The lines of a request's head. */
export interface Head {
  readonly method?: string;
  readonly path: string;
  readonly version?: string;
  readonly signature: string;
  /** Further lines, as they are. */
  readonly lines?: readonly string[];
}

/** A request's head, with the empty line at its end. */
export function head({
  method = 'POST',
  path,
  version = '1.1',
  signature,
  lines = [],
}: Head): string {
  return [
    `${method} ${path} HTTP/${version}`,
    'Host: shop.example',
    'Content-Type: application/json',
    `X-Webhook-Signature: ${signature}`,
    ...lines,
    '',
    '',
  ].join('\r\n');
}

/** A whole request with Content-Length. */
export function withLength({ path, signature, body }: Omit<Delivery, 'company'>): Buffer {
  const lines = [`Content-Length: ${body.length}`];
  return Buffer.concat([Buffer.from(head({ path, signature, lines })), body]);
}

/** A whole chunked request, with a chunk for every `size` bytes. */
export function chunked(
  { path, signature, body }: Omit<Delivery, 'company'>,
  size: number,
): Buffer {
  const parts: Buffer[] = [
    Buffer.from(head({ path, signature, lines: ['Transfer-Encoding: chunked'] })),
  ];
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

/** A request with a body of 1 MiB in chunks of one byte, in pieces of 64 KiB of them. */
export function tinyChunkRequest(path: string, signature: string): string[] {
  const chunks = '1\r\nx\r\n'.repeat(65_536);
  const start = head({ path, signature, lines: ['Transfer-Encoding: chunked'] });
  return [start, ...Array.from({ length: 16 }, () => chunks), '0\r\n\r\n'];
}
