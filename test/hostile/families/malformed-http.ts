// Malformed HTTP requests, written to a socket, and valid requests that are split at each byte.
import { COMPANIES, eventKey, validRequest } from '../webhook-requests.ts';
import type { WebhookRequest } from '../webhook-requests.ts';
import type { Attack, Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import type { ExchangeOptions } from '../raw-exchange.ts';
import { chunked, head, withLength } from '../request-bytes.ts';
import { REJECTED } from '../tally.ts';
import { HEADS } from '../malformed-heads.ts';
import { SMUGGLING } from '../smuggling.ts';

/** Sends one request or several on one connection, and checks the result. */
type Attempt = (attack: Attack, n: number) => Promise<void>;

const ATTEMPTS: readonly Attempt[] = [
  ...(['valid', 'forged'] as const).flatMap((kind) => [
    split(kind, 'length'),
    split(kind, 'chunked'),
  ]),
  malformedHead,
  smuggle,
  oversized,
  incomplete,
  randomBytes,
  pipelined,
  expectContinue,
  malformedHead,
  smuggle,
];

export const family: Family = {
  name: 'malformed HTTP',
  lanes: 6,
  attempt: (attack, n) => ATTEMPTS[n % ATTEMPTS.length]!(attack, Math.floor(n / ATTEMPTS.length)),
};

/** A request in two packets. Each attempt splits it one byte later; every eighth attempt sends packets of one byte. */
function split(kind: 'valid' | 'forged', framing: 'length' | 'chunked'): Attempt {
  return async ({ port, random, tally }, n) => {
    const company = random.pick(COMPANIES);
    const id = `split-${kind}-${framing}-${n}`;
    const valid = validRequest(company, id);
    const sent = kind === 'valid' ? valid : { ...valid, signature: `sha512=${random.hex(128)}` };
    const bytes = framing === 'length' ? withLength(sent) : chunked(sent, 1 + (n % 64));
    const at = 1 + (n % (bytes.length - 1));
    const pieces =
      n % 8 === 7
        ? Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
        : [bytes.subarray(0, at), bytes.subarray(at)];
    const label = `${kind} request (${framing}) split at ${at}`;
    const expected =
      kind === 'valid'
        ? ({ kind: 'accepted', event: eventKey(company.id, id) } as const)
        : REJECTED;
    tally.check(label, await exchange(port, pieces), expected);
  };
}

async function malformedHead({ port, random, tally }: Attack, n: number): Promise<void> {
  const [label, text] = HEADS[n % HEADS.length]!;
  const { path, body } = validRequest(COMPANIES[0]!, 'malformed');
  const request = text({ path, signature: `sha512=${random.hex(128)}`, length: body.length });
  const response = await exchange(port, [Buffer.from(request, 'latin1'), body], { end: true });
  tally.check(label, response, label === 'OPTIONS' ? { kind: 'either' } : REJECTED);
}

/** A request that contains a second, valid request. The application must not read it as a request. */
async function smuggle({ port, random, tally }: Attack, n: number): Promise<void> {
  const [label, request] = SMUGGLING[n % SMUGGLING.length]!;
  const inner = withLength(validRequest(COMPANIES[0]!, `smuggled-${label}-${n}`)).toString();
  const outer = request(`sha512=${random.hex(128)}`, inner);
  const response = await exchange(port, [outer], { responses: 2, end: true });
  tally.check(`smuggling: ${label}`, response, REJECTED);
}

async function oversized({ port, random, tally }: Attack, n: number): Promise<void> {
  const { path } = validRequest(COMPANIES[0]!, 'oversized');
  const signature = `sha512=${random.hex(128)}`;
  const lines = [
    [`X-Large: ${'x'.repeat(1_000_000)}`],
    Array.from({ length: 5000 }, (_, index) => `X-${index}: 1`),
    Array.from({ length: 900 }, () => 'A: b'),
    ['Content-Length: 99999999'],
  ][n % 4]!;
  const response = await exchange(port, [head({ path, signature, lines })], { end: true });
  tally.check('oversized head or body', response, REJECTED);
}

async function incomplete({ port, random, tally }: Attack): Promise<void> {
  const valid = validRequest(COMPANIES[0]!, 'incomplete');
  const bytes = random.next() < 0.5 ? withLength(valid) : chunked(valid, 40);
  const part = bytes.subarray(0, random.between(1, bytes.length - 1));
  tally.check(
    'sender that closes the connection early',
    await exchange(port, [part], { end: true }),
    REJECTED,
  );
}

async function randomBytes({ port, random, tally }: Attack): Promise<void> {
  const tls = Buffer.from('16030100c8010000c40303', 'hex');
  const bytes = Buffer.from(random.hex(2 * random.between(1, 3000)), 'hex');
  const pieces = [random.next() < 0.3 ? Buffer.concat([tls, bytes]) : bytes];
  tally.check('random bytes', await exchange(port, pieces, { end: true }), REJECTED);
}

/** Two requests in one packet, one of them forged. The application must check each separately. */
async function pipelined({ port, random, tally }: Attack, n: number): Promise<void> {
  const company = random.pick(COMPANIES);
  const id = `pipelined-${n}`;
  const valid = validRequest(company, id);
  const forged: WebhookRequest = { ...valid, signature: `sha512=${random.hex(128)}` };
  const validFirst = n % 2 === 0;
  const pieces = [
    Buffer.concat(
      (validFirst ? [valid, forged] : [forged, valid]).map((request) => withLength(request)),
    ),
  ];
  const options: ExchangeOptions = { responses: 2 };
  const response = await exchange(port, pieces, options);
  const [first, second] = response.statuses;
  const event = eventKey(company.id, id);
  const resultOf = (status: number | undefined) => ({
    ...response,
    statuses: status === undefined ? [] : [status],
  });
  tally.check(
    'pipelined, first',
    resultOf(first),
    validFirst ? { kind: 'accepted', event } : REJECTED,
  );
  // The application may close the connection after it rejects the first request.
  tally.check(
    'pipelined, second',
    resultOf(second),
    validFirst ? REJECTED : { kind: 'either', event },
  );
}

async function expectContinue({ port, random, tally }: Attack, n: number): Promise<void> {
  const company = random.pick(COMPANIES);
  const id = `continue-${n}`;
  const { path, signature, body } = validRequest(company, id);
  const expect = n % 3 === 0 ? '200-ok' : '100-continue';
  const forged = n % 3 === 1;
  const lines = [`Content-Length: ${body.length}`, `Expect: ${expect}`];
  const sent = forged ? `sha512=${random.hex(128)}` : signature;
  const pieces = [head({ path, signature: sent, lines }), body];
  const response = await exchange(port, pieces, { pauseMs: 5 });
  const event = eventKey(company.id, id);
  const valid = { kind: expect === '100-continue' ? 'accepted' : 'either', event } as const;
  tally.check(`Expect: ${expect}`, response, forged ? REJECTED : valid);
}
