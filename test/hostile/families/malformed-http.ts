// Requests that break HTTP, written to a socket byte by byte, and valid ones that are split at each byte.
import { COMPANIES, eventKey, validDelivery } from '../deliveries.ts';
import type { Delivery } from '../deliveries.ts';
import type { Attack, Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import type { RawOptions } from '../raw-exchange.ts';
import { chunked, head, withLength } from '../requests.ts';
import { REFUSED } from '../tally.ts';
import { HEADS } from '../malformed-heads.ts';
import { SMUGGLING } from '../smuggling.ts';

/** One attempt: what is written, and what may come of it. */
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
  rubbish,
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

/** A delivery in two packets, split at the next byte with each attempt; every eighth, in packets of one byte. */
function split(kind: 'valid' | 'forged', framing: 'length' | 'chunked'): Attempt {
  return async ({ port, random, tally }, n) => {
    const company = random.pick(COMPANIES);
    const id = `split-${kind}-${framing}-${n}`;
    const valid = validDelivery(company, id);
    const sent = kind === 'valid' ? valid : { ...valid, signature: `sha512=${random.hex(128)}` };
    const bytes = framing === 'length' ? withLength(sent) : chunked(sent, 1 + (n % 64));
    const at = 1 + (n % (bytes.length - 1));
    const pieces =
      n % 8 === 7
        ? Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
        : [bytes.subarray(0, at), bytes.subarray(at)];
    const label = `${kind} delivery (${framing}) split at ${at}`;
    const expected =
      kind === 'valid' ? ({ kind: 'accepted', event: eventKey(company.id, id) } as const) : REFUSED;
    tally.judge(label, await exchange(port, pieces), expected);
  };
}

async function malformedHead({ port, random, tally }: Attack, n: number): Promise<void> {
  const [label, text] = HEADS[n % HEADS.length]!;
  const { path, body } = validDelivery(COMPANIES[0]!, 'malformed');
  const request = text({ path, signature: `sha512=${random.hex(128)}`, length: body.length });
  const answer = await exchange(port, [Buffer.from(request, 'latin1'), body], { end: true });
  tally.judge(label, answer, label === 'OPTIONS' ? { kind: 'either' } : REFUSED);
}

/** A request that holds a second, valid one, which no server may find in it. */
async function smuggle({ port, random, tally }: Attack, n: number): Promise<void> {
  const [label, request] = SMUGGLING[n % SMUGGLING.length]!;
  const inner = withLength(validDelivery(COMPANIES[0]!, `smuggled-${label}-${n}`)).toString();
  const outer = request(`sha512=${random.hex(128)}`, inner);
  const answer = await exchange(port, [outer], { answers: 2, end: true });
  tally.judge(`smuggling: ${label}`, answer, REFUSED);
}

async function oversized({ port, random, tally }: Attack, n: number): Promise<void> {
  const { path } = validDelivery(COMPANIES[0]!, 'oversized');
  const signature = `sha512=${random.hex(128)}`;
  const lines = [
    [`X-Large: ${'x'.repeat(1_000_000)}`],
    Array.from({ length: 5000 }, (_, index) => `X-${index}: 1`),
    Array.from({ length: 900 }, () => 'A: b'),
    ['Content-Length: 99999999'],
  ][n % 4]!;
  const answer = await exchange(port, [head({ path, signature, lines })], { end: true });
  tally.judge('oversized head or body', answer, REFUSED);
}

async function incomplete({ port, random, tally }: Attack): Promise<void> {
  const valid = validDelivery(COMPANIES[0]!, 'incomplete');
  const bytes = random.next() < 0.5 ? withLength(valid) : chunked(valid, 40);
  const part = bytes.subarray(0, random.between(1, bytes.length - 1));
  tally.judge('sender that ends early', await exchange(port, [part], { end: true }), REFUSED);
}

async function rubbish({ port, random, tally }: Attack): Promise<void> {
  const tls = Buffer.from('16030100c8010000c40303', 'hex');
  const bytes = Buffer.from(random.hex(2 * random.between(1, 3000)), 'hex');
  const pieces = [random.next() < 0.3 ? Buffer.concat([tls, bytes]) : bytes];
  tally.judge('random bytes', await exchange(port, pieces, { end: true }), REFUSED);
}

/** Two requests in one packet, one of them forged: each is judged on its own. */
async function pipelined({ port, random, tally }: Attack, n: number): Promise<void> {
  const company = random.pick(COMPANIES);
  const id = `pipelined-${n}`;
  const valid = validDelivery(company, id);
  const forged: Delivery = { ...valid, signature: `sha512=${random.hex(128)}` };
  const validFirst = n % 2 === 0;
  const pieces = [
    Buffer.concat((validFirst ? [valid, forged] : [forged, valid]).map((one) => withLength(one))),
  ];
  const options: RawOptions = { answers: 2 };
  const answer = await exchange(port, pieces, options);
  const [first, second] = answer.statuses;
  const event = eventKey(company.id, id);
  const one = (status: number | undefined) => ({
    ...answer,
    statuses: status === undefined ? [] : [status],
  });
  tally.judge('pipelined, first', one(first), validFirst ? { kind: 'accepted', event } : REFUSED);
  // A refusal may end the connection.
  tally.judge('pipelined, second', one(second), validFirst ? REFUSED : { kind: 'either', event });
}

async function expectContinue({ port, random, tally }: Attack, n: number): Promise<void> {
  const company = random.pick(COMPANIES);
  const id = `continue-${n}`;
  const { path, signature, body } = validDelivery(company, id);
  const expect = n % 3 === 0 ? '200-ok' : '100-continue';
  const forged = n % 3 === 1;
  const lines = [`Content-Length: ${body.length}`, `Expect: ${expect}`];
  const sent = forged ? `sha512=${random.hex(128)}` : signature;
  const pieces = [head({ path, signature: sent, lines }), body];
  const answer = await exchange(port, pieces, { pauseMs: 5 });
  const event = eventKey(company.id, id);
  const valid = { kind: expect === '100-continue' ? 'accepted' : 'either', event } as const;
  tally.judge(`Expect: ${expect}`, answer, forged ? REFUSED : valid);
}
