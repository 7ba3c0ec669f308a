// Random valid and invalid JSON and UTF-8 bodies from fast-check, with valid and forged signatures.
import * as fc from 'fast-check';
import { COMPANIES, PAYLOAD_MARKER, signedRequest, eventKey } from '../webhook-requests.ts';
import type { Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { chunked, withLength } from '../request-bytes.ts';
import { REJECTED } from '../tally.ts';
import type { Expectation } from '../tally.ts';

const NUMBERS = [
  '-0',
  '1e400',
  '-1e400',
  '1e-400',
  '9007199254740993',
  '0.1e-7',
  `1${'0'.repeat(5000)}`,
];
const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'then', 'id', ''];
const key = fc.oneof(fc.string({ unit: 'binary', maxLength: 5 }), fc.constantFrom(...NAMES));
const text = fc.oneof(
  fc.string({ unit: 'binary' }).map((value) => JSON.stringify(value)),
  fc.constantFrom('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\ufeff"', `"${PAYLOAD_MARKER}"`),
);
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'true', '[]', '{}', ...NUMBERS),
    text,
    fc.array(tie('value')).map((items) => `[${items.join(',')}]`),
    tie('object'),
  ),
  // Keys may be repeated.
  object: fc
    .array(fc.tuple(key, tie('value')))
    .map(
      (fields) =>
        `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`,
    ),
}));
const deep = fc
  .tuple(fc.constantFrom(['[', ']'], ['{"a":', '}']), fc.constantFrom(50, 900, 5000, 100_000))
  .map(([[open, close], depth]) => `{"a":${open.repeat(depth)}1${close.repeat(depth)}}`);
const name = fc.oneof(
  { weight: 8, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }) },
  fc.constantFrom(254, 255, 256, 100_000).map((length) => 'i'.repeat(length)),
  fc.constantFrom(254, 255, 256).map((length) => '\u{1f4b0}'.repeat(length)),
  fc.constantFrom(...NAMES, '\ud800', 'a\0b', 'a\nb', '\u202e', "'; DROP TABLE payment_event; --"),
);
const other = fc.constantFrom('null', '1', '[]', 'true', '{}');
const envelope = fc
  .record({
    id: fc.oneof({ weight: 20, arbitrary: name.map((id) => JSON.stringify(id)) }, other),
    eventType: fc.oneof({ weight: 20, arbitrary: name.map((type) => JSON.stringify(type)) }, other),
    timestamp: fc.oneof(
      { weight: 12, arbitrary: fc.constant('now') },
      fc.constantFrom('1', '', 'x'),
    ),
    data: fc.oneof({ weight: 20, arbitrary: object }, other, deep),
    rest: fc.oneof(
      { weight: 6, arbitrary: fc.constant('') },
      fc.constantFrom(',"metadata":null', ',"metadata":[]', ',"__proto__":{"id":"x"}', ','),
    ),
  })
  .map(({ id, eventType, timestamp, data, rest }) => {
    const time = timestamp === 'now' ? new Date().toISOString() : timestamp;
    return `{"id":${id},"eventType":${eventType},"timestamp":"${time}","data":${data}${rest}}`;
  });
const body = fc.oneof(
  { weight: 20, arbitrary: envelope.map((json) => Buffer.from(json)) },
  envelope.map((json) => Buffer.from(`\ufeff${json}`)),
  envelope.map((json) => Buffer.concat([Buffer.from(json), Buffer.from([0])])),
  envelope.map((json) => Buffer.from(json, 'utf16le')),
  envelope.map((json) => Buffer.from(json.replace('"data"', '"\u00e9":1,"data"'), 'latin1')),
  fc.oneof(object, deep).map((json) => Buffer.from(json)),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
);

/** Bodies are generated in batches, because one body takes about as long as a hundred bodies. */
const BATCH = 100;
let batch: Buffer[] = [];
/** Keys of the events sent with a valid signature. */
const sent = new Set<string | undefined>();

export const family: Family = {
  name: 'hostile JSON',
  lanes: 4,
  async attempt({ port, seed, random, tally }, n) {
    if (batch.length === 0) batch = fc.sample(body, { numRuns: BATCH, seed: seed + n });
    const bytes = batch.pop()!;
    const company = random.pick(COMPANIES);
    const expected = expectation(bytes, company.id);
    // The application logs every second body for the same event id, which only the owner of the secret can send.
    const known = 'event' in expected && sent.has(expected.event);
    const signed = !known && random.next() < 0.7;
    const valid = signedRequest(company, bytes);
    const webhookRequest = signed ? valid : { ...valid, signature: `sha512=${random.hex(128)}` };
    const request =
      random.next() < 0.8 ? withLength(webhookRequest) : chunked(webhookRequest, 1000);
    if (signed && 'event' in expected) sent.add(expected.event);
    const label = `${signed ? 'signed' : 'forged'} body ${bytes.toString('base64').slice(0, 500)}`;
    tally.check(label, await exchange(port, [request]), signed ? expected : REJECTED);
  },
};

/** Expected result for a signed body, computed without the package under test. */
function expectation(bytes: Buffer, company: string): Expectation {
  let parsed: Record<string, unknown> | null;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as typeof parsed;
  } catch (error) {
    // The application may reject a body that is nested too deeply.
    return error instanceof RangeError ? { kind: 'either' } : REJECTED;
  }
  if (!isObject(parsed)) return REJECTED;
  const { id, eventType, timestamp, data, metadata } = parsed;
  const isKey = (value: unknown): value is string =>
    typeof value === 'string' && /^[^\p{Cc}]{1,255}$/u.test(value);
  if (!isKey(id) || !isKey(eventType) || !isObject(data)) return REJECTED;
  if (typeof timestamp !== 'string' || !/^20\d\d-.*Z$/.test(timestamp)) return REJECTED;
  if (metadata !== undefined && metadata !== null && !isObject(metadata)) return REJECTED;
  const event = eventKey(company, id);
  // A long body may be nested too deeply, and the accepted depth depends on the stack size.
  if (bytes.length > 5000) return { kind: 'either', event };
  return { kind: 'accepted', event };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
