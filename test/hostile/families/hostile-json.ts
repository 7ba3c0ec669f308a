// Bodies from fast-check, signed correctly or not: what JSON and UTF-8 allow, and what they do not.
import * as fc from 'fast-check';
import { COMPANIES, PAYLOAD_MARKER, deliveryOf, eventKey } from '../deliveries.ts';
import type { Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { chunked, withLength } from '../requests.ts';
import { REFUSED } from '../tally.ts';
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

/** Cases are drawn in batches: a sample of one takes about as long as one of a hundred. */
const BATCH = 100;
let batch: Buffer[] = [];
/** Events that were sent. */
const sent = new Set<string | undefined>();

export const family: Family = {
  name: 'hostile JSON',
  lanes: 4,
  async attempt({ port, seed, random, tally }, n) {
    if (batch.length === 0) batch = fc.sample(body, { numRuns: BATCH, seed: seed + n });
    const bytes = batch.pop()!;
    const company = random.pick(COMPANIES);
    const expected = expectation(bytes, company.id);
    // A second body of one event is logged each time, and only the owner of the secret can send it.
    const known = 'event' in expected && sent.has(expected.event);
    const signed = !known && random.next() < 0.7;
    const valid = deliveryOf(company, bytes);
    const delivery = signed ? valid : { ...valid, signature: `sha512=${random.hex(128)}` };
    const request = random.next() < 0.8 ? withLength(delivery) : chunked(delivery, 1000);
    if (signed && 'event' in expected) sent.add(expected.event);
    const label = `${signed ? 'signed' : 'forged'} body ${bytes.toString('base64').slice(0, 500)}`;
    tally.judge(label, await exchange(port, [request]), signed ? expected : REFUSED);
  },
};

/** What a signed body must come to, by the rules of the envelope, without the package under test. */
function expectation(bytes: Buffer, company: string): Expectation {
  let parsed: Record<string, unknown> | null;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as typeof parsed;
  } catch (error) {
    // A body nested too deeply may be refused.
    return error instanceof RangeError ? { kind: 'either' } : REFUSED;
  }
  if (!isObject(parsed)) return REFUSED;
  const { id, eventType, timestamp, data, metadata } = parsed;
  const named = (value: unknown): value is string =>
    typeof value === 'string' && /^[^\p{Cc}]{1,255}$/u.test(value);
  if (!named(id) || !named(eventType) || !isObject(data)) return REFUSED;
  if (typeof timestamp !== 'string' || !/^20\d\d-.*Z$/.test(timestamp)) return REFUSED;
  if (metadata !== undefined && metadata !== null && !isObject(metadata)) return REFUSED;
  const event = eventKey(company, id);
  // The limit of the depth is that of the stack.
  if (bytes.length > 5000) return { kind: 'either', event };
  return { kind: 'accepted', event };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
