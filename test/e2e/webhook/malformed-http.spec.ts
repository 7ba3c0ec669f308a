import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { RawConnection } from '../../support/http/http-exchange.js';
import { bytesOf, head } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  ADAPTERS,
  Orders,
  SECRET,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const PATH = '/webhooks/payments';
const BODY = '{'.repeat(1000);
const valid = () => bytesOf(signedWebhook({ webhookSecret: SECRET })).toString();

const METHODS = ['CONNECT', 'TRACE', 'QUERY', 'PROPFIND', 'BREW', 'post', 'POST\t', ''];
/** Request targets that differ from the path of the endpoint. */
const TARGETS = [
  `http://evil.example${PATH}`,
  `//evil.example${PATH}`,
  `/x/..${PATH}`,
  `/${PATH}//`,
  PATH.replaceAll('/', '\\'),
  `${PATH}\0`,
  `${PATH} x`,
  PATH.slice(1),
  '*',
  '',
  `/${'a/'.repeat(5000)}`,
];
const VERSIONS = ['HTTP/0.9', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1.1', 'HTTP/', ''];
/** Malformed or unusual header lines. */
const LINES = [
  'X-Folded: a\r\n b',
  'X-Nul: a\0b',
  'X-Return: a\rb',
  'X-Feed: a\nb',
  'No colon',
  ': no name',
  'Space before : colon',
  'X-Webhook-Signature: sha512=00',
  'Host: other.example',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
  'Connection: X-Webhook-Signature',
  `X-Large: ${'x'.repeat(1_000_000)}`,
];
/** Header lines that contradict each other about the end of the body, or are invalid. */
const FRAMINGS = [
  'Content-Length: 5\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: 5, 5',
  'Content-Length: -5',
  'Content-Length: 0x5',
  'Content-Length: 99999999999999999999999999',
  'Content-Length: ',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding : chunked\r\nContent-Length: 5',
  'Transfer-Encoding:\r\n chunked\r\nContent-Length: 5',
];
/** Ends of a chunked body that are not well-formed. */
const CHUNKS = [
  'zz\r\nhello\r\n0\r\n\r\n',
  '-5\r\nhello\r\n0\r\n\r\n',
  '10000000000000000\r\nhello\r\n0\r\n\r\n',
  '2\r\nhello\r\n0\r\n\r\n',
  'ff\r\nhello\r\n0\r\n\r\n',
  '5\nhello\r\n0\r\n\r\n',
  '5\r\nhello0\r\n\r\n',
  `5;${'x'.repeat(100_000)}\r\nhello\r\n0\r\n\r\n`,
  '5\r\nhello\r\n0\r\nX-Webhook-Signature: sha512=00\r\n\r\n',
];
/** The head of an unverified request that ends with these lines. By default, they replace `Content-Length`. */
const ending = (lines: string, length?: string) =>
  head(undefined, { 'Content-Length': length }).replace(/\r\n$/, `${lines}\r\n\r\n`);

/** Requests without a valid signature. Some contain a valid request, which a lenient parser reads as the next request. */
const REQUESTS: readonly (readonly [what: string, request: () => string])[] = [
  ...[
    ...METHODS.map((method) => `${method} ${PATH} HTTP/1.1`),
    ...TARGETS.map((target) => `POST ${target} HTTP/1.1`),
    ...VERSIONS.map((version) => `POST ${PATH} ${version}`),
  ].map((line) => [line, () => head().replace(/^.*/, line) + BODY] as const),
  ...LINES.map((line) => [line, () => ending(line, '1000') + BODY] as const),
  ...FRAMINGS.map((lines) => [lines, () => `${ending(lines)}0\r\n\r\n${valid()}`] as const),
  ...CHUNKS.map((end) => {
    const chunked = (inner: string) => `${inner.length.toString(16)}\r\n${inner}\r\n${end}`;
    return [end, () => ending('Transfer-Encoding: chunked') + chunked(valid())] as const;
  }),
  ['line feeds only', () => (head() + BODY).replaceAll('\r\n', '\n')],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['a TLS handshake', () => '\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03'],
];

describe.each(Object.keys(ADAPTERS))('malformed HTTP on %s', (adapter) => {
  let app: WebhookApplication;
  beforeAll(async () => {
    app = await WebhookApplication.start({ adapter: ADAPTERS[adapter]!(), providers: [Orders] });
  });
  afterEach(() => expect(app.app.get(Orders).seen).toEqual([]));
  afterAll(async () => app.app.close());

  it.each(REQUESTS.map(([what, request]) => [JSON.stringify(what.slice(0, 60)), request] as const))(
    'a request with %s is rejected without a server error, and no handler runs',
    async (_, request) => {
      const sender = await RawConnection.open(app.url);
      await sender.write(Buffer.from(request(), 'latin1'));
      sender.socket.end();
      const responses = await sender.all();
      const statuses = [...responses.matchAll(/^HTTP\/1\.[01] (\d{3})/gm)].map(([, text]) => text);
      for (const status of statuses) expect(status).toMatch(/^(4\d\d|501|503|505)$/);
    },
  );
});
