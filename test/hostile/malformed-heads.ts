import { head as requestHead } from './request-bytes.ts';

/** Values that are inserted into the head of a malformed request. */
export interface HeadParts {
  readonly path: string;
  readonly signature: string;
  readonly length: number;
}

type MalformedHead = readonly [label: string, text: (parts: HeadParts) => string];

/** Methods other than POST. */
const METHODS = ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND'];
const BAD_METHODS = ['CONNECT', 'post', 'BREW', 'POST\t', '', 'P\u00d6ST', 'POST\0'];
/** Request targets that differ from the path of the endpoint. */
const TARGETS: readonly ((path: string) => string)[] = [
  (path) => `http://evil.example${path}`,
  (path) => `//evil.example${path}`,
  (path) => `/${path}`,
  (path) => `${path}//`,
  (path) => `${path}?company=duka`,
  (path) => `${path}#fragment`,
  (path) => path.replaceAll('/', '\\'),
  (path) => `/x/..${path}`,
  (path) => `/.${path}`,
  (path) => path.replace('webhooks', '%77ebhooks'),
  (path) => path.toUpperCase(),
  (path) => `${path}\0`,
  (path) => `${path} x`,
  (path) => path.slice(1),
  () => '*',
  () => '',
  () => '/',
  () => `/${'a/'.repeat(5000)}`,
];
const VERSIONS = ['0.9', '1.0', '1.2', '2.0', '3', '', '1.1.1', '-1'];
/** Malformed, repeated or unusual header lines. The head also has a valid Content-Length. */
const LINES: readonly string[] = [
  'X-Folded: a\r\n b',
  'X-Nul: a\0b',
  'X-Return: a\rb',
  'X-Feed: a\nb',
  'No colon',
  ': no name',
  'Space before : colon',
  ' leading: space',
  'X-\u00dcml: 1',
  'X-Webhook-Signature: sha512=00',
  'Content-Type: text/plain',
  'Content-Encoding: gzip',
  'Host: other.example',
  'Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
  'Connection: X-Webhook-Signature',
  'Trailer: X-Webhook-Signature',
];

/** Heads of requests, each malformed or unusual in one way; none of them has a valid signature. */
export const HEADS: readonly MalformedHead[] = [
  ...[...METHODS, ...BAD_METHODS].map((method): MalformedHead => [
    method,
    (parts) => head(`${method} ${parts.path} HTTP/1.1`, parts),
  ]),
  ...TARGETS.map((target): MalformedHead => {
    const label = `target ${target('/p').slice(0, 40)}`;
    return [label, (parts) => head(`POST ${target(parts.path)} HTTP/1.1`, parts)];
  }),
  ...VERSIONS.map((version): MalformedHead => {
    return [`HTTP/${version}`, (parts) => head(`POST ${parts.path} HTTP/${version}`, parts)];
  }),
  ...LINES.map((line): MalformedHead => {
    return [line, (parts) => head(`POST ${parts.path} HTTP/1.1`, parts, line)];
  }),
  ['HTTP/0.9', ({ path }) => `GET ${path}\r\n`],
  ['HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  [
    'line feeds only',
    (parts) => head(`POST ${parts.path} HTTP/1.1`, parts).replaceAll('\r\n', '\n'),
  ],
  ['returns only', (parts) => head(`POST ${parts.path} HTTP/1.1`, parts).replaceAll('\r\n', '\r')],
  ['no Host', ({ path }) => `POST ${path} HTTP/1.1\r\nContent-Length: 0\r\n\r\n`],
  ['empty lines first', (parts) => `\r\n\r\n\n${head(`POST ${parts.path} HTTP/1.1`, parts)}`],
];

function head(requestLine: string, { path, signature, length }: HeadParts, line?: string): string {
  const lines = [`Content-Length: ${length}`, ...(line === undefined ? [] : [line])];
  return requestHead({ path, signature, requestLine, lines });
}
