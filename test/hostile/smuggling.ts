import { head } from './request-bytes.ts';

/** A forged request with ambiguous framing. Its body contains or precedes a whole second request (`inner`). */
type Smuggling = readonly [label: string, request: (signature: string, inner: string) => string];

const PATH = '/webhooks/payments/acme';

/** Header lines that contradict each other about the end of the body, or are invalid. */
const FRAMINGS: readonly (readonly [label: string, lines: readonly string[]])[] = [
  ['CL and TE', ['Content-Length: 5', 'Transfer-Encoding: chunked']],
  ['TE and CL', ['Transfer-Encoding: chunked', 'Content-Length: 5']],
  ['two lengths', ['Content-Length: 5', 'Content-Length: 6']],
  ['one length twice', ['Content-Length: 5', 'Content-Length: 5']],
  ['list of lengths', ['Content-Length: 5, 5']],
  ['negative length', ['Content-Length: -5']],
  ['length with a plus', ['Content-Length: +5']],
  ['hexadecimal length', ['Content-Length: 0x5']],
  ['length with an exponent', ['Content-Length: 1e9']],
  ['huge length', ['Content-Length: 99999999999999999999999999']],
  ['empty length', ['Content-Length: ']],
  ['length with a space', ['Content-Length: 5 5']],
  ['xchunked', ['Transfer-Encoding: xchunked']],
  ['chunked, identity', ['Transfer-Encoding: chunked, identity']],
  ['chunked twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
  ['identity', ['Transfer-Encoding: identity']],
  ['space before the colon', ['Transfer-Encoding : chunked', 'Content-Length: 5']],
  ['folded encoding', ['Transfer-Encoding:\r\n chunked', 'Content-Length: 5']],
  ['encoding with a tab', ['Transfer-Encoding:\tchunked\x0b', 'Content-Length: 5']],
];

/** Bodies of a chunked request that are not well-formed. */
const CHUNKS: readonly (readonly [label: string, body: string])[] = [
  ['invalid size', 'zz\r\nhello\r\n0\r\n\r\n'],
  ['negative size', '-5\r\nhello\r\n0\r\n\r\n'],
  ['size with 0x', '0x5\r\nhello\r\n0\r\n\r\n'],
  ['size of 2^64', '10000000000000000\r\nhello\r\n0\r\n\r\n'],
  ['size too small', '2\r\nhello\r\n0\r\n\r\n'],
  ['size too large', 'ff\r\nhello\r\n0\r\n\r\n'],
  ['missing size', '\r\nhello\r\n0\r\n\r\n'],
  ['line feed after the size', '5\nhello\r\n0\r\n\r\n'],
  ['missing end of the chunk', '5\r\nhello0\r\n\r\n'],
  ['extension', '5;name=value;other="a\\"b"\r\nhello\r\n0;last\r\n\r\n'],
  ['long extension', `5;${'x'.repeat(100_000)}\r\nhello\r\n0\r\n\r\n`],
  ['extension with a line feed', '5;a\nb\r\nhello\r\n0\r\n\r\n'],
  ['trailers', '5\r\nhello\r\n0\r\nX-Webhook-Signature: sha512=00\r\n\r\n'],
  ['many trailers', `0\r\n${'a: b\r\n'.repeat(5000)}\r\n`],
];

/** Requests that a lenient parser reads as two requests. The inner request must never run a handler. */
export const SMUGGLING: readonly Smuggling[] = [
  ...FRAMINGS.map(([label, lines]): Smuggling => [
    label,
    (signature, inner) => `${head({ path: PATH, signature, lines })}0\r\n\r\n${inner}`,
  ]),
  ...CHUNKS.map(([label, body]): Smuggling => [
    label,
    (signature, inner) =>
      head({ path: PATH, signature, lines: ['Transfer-Encoding: chunked'] }) +
      // The inner request is the data of a chunk. A parser that miscounts the chunk size reads it as a request.
      `${inner.length.toString(16)}\r\n${inner}\r\n${body}`,
  ]),
];
