// Requests with an almost correct signature, and valid requests that are sent repeatedly.
import { COMPANIES, eventKey, sign, validRequest } from '../webhook-requests.ts';
import type { WebhookRequest, TestCompany } from '../webhook-requests.ts';
import type { Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { chunked, withLength } from '../request-bytes.ts';
import type { SeededRandom } from '../../chaos/seeded-random.ts';
import { REJECTED } from '../tally.ts';
import type { Expectation } from '../tally.ts';

type Forgery = (
  valid: WebhookRequest,
  random: SeededRandom,
  company: TestCompany,
) => Partial<WebhookRequest>;

const FORGERIES: Readonly<Record<string, Forgery>> = {
  'no signature': () => ({ signature: '' }),
  'random signature': (_, random) => ({ signature: `sha512=${random.hex(128)}` }),
  truncated: ({ signature }, random) => ({ signature: signature.slice(0, random.between(0, 134)) }),
  'too long': ({ signature }, random) => ({ signature: signature + random.hex(1) }),
  'one digit changed': ({ signature }, random) => ({
    signature: replaceAt(signature, random.between(7, 134), (digit) => (digit === '0' ? '1' : '0')),
  }),
  'scheme in upper case': ({ signature }) => ({ signature: signature.replace('sha', 'SHA') }),
  'other scheme': ({ signature }, random) => ({
    signature: signature.replace(
      'sha512',
      random.pick(['sha256', 'sha1', 'v1', 'md5', 'none', '']),
    ),
  }),
  'no scheme': ({ signature }) => ({ signature: signature.slice(7) }),
  base64: ({ signature }) => ({
    signature: `sha512=${Buffer.from(signature.slice(7), 'hex').toString('base64')}`,
  }),
  // Latin-1 characters whose low bits are those of a digit, and the UTF-8 of full-width digits.
  'other digits': ({ signature }, random) => ({
    signature: replaceAt(signature, random.between(7, 134), () =>
      random.pick(['\xb2', 'ï¼\x90', '٠']),
    ),
  }),
  'eleven candidates, one right': ({ signature }) => ({
    signature: [...Array.from({ length: 10 }, () => signature.slice(0, 134)), signature].join(','),
  }),
  'many candidates': (_, random) => ({
    signature: Array.from({ length: 60 }, () => `sha512=${random.hex(128)}`).join(', '),
  }),
  'signature of other bytes': ({ body }, _, { secret }) => ({
    signature: sign(Buffer.concat([body, Buffer.from(' ')]), secret),
  }),
  'signature of parsed JSON': ({ body }, _, { secret }) => ({
    body: Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 1)),
    signature: sign(body, secret),
  }),
  "another company's secret": ({ body }, _, { id }) => ({
    signature: sign(body, COMPANIES.find((other) => other.id !== id)!.secret),
  }),
  'empty secret': ({ body }) => ({ signature: sign(body, '') }),
  'one bit of the body changed': ({ body }, random) => {
    const changed = Buffer.from(body);
    changed[random.between(0, body.length - 1)]! ^= 1 << random.between(0, 7);
    return { body: changed };
  },
};
const NAMES = Object.keys(FORGERIES);

export const family: Family = {
  name: 'forged signatures',
  lanes: 6,
  async attempt({ port, random, tally }, n) {
    const company = random.pick(COMPANIES);
    const valid = validRequest(company, `forged-${n}`);
    const name = NAMES[n % (NAMES.length + 1)];
    if (name !== undefined) {
      const forged = { ...valid, ...FORGERIES[name]!(valid, random, company) };
      const request = n % 2 === 0 ? withLength(forged) : chunked(forged, random.between(1, 200));
      tally.check(name, await exchange(port, [request]), REJECTED);
      return;
    }
    // The inbox stores an event that is older than its limit as stale, and runs no handler.
    const old = validRequest(company, `old-${n}`, { timestamp: '2001-01-01T00:00:00Z' });
    tally.check('old event', await exchange(port, [withLength(old)]), { kind: 'either' });
    // A captured request that is repeated in several forms is accepted each time, and its event is handled once.
    const replay = validRequest(company, `replayed-${n}`);
    const repeated = { ...replay, signature: `sha512=${random.hex(128)}, ${replay.signature}` };
    const expected: Expectation = {
      kind: 'accepted',
      event: eventKey(company.id, `replayed-${n}`),
    };
    const requests = [
      withLength(replay),
      withLength(replay),
      chunked(repeated, 50),
      withLength(replay),
    ];
    for (const request of requests) {
      tally.check('replayed request', await exchange(port, [request]), expected);
    }
  },
};

function replaceAt(text: string, at: number, change: (character: string) => string): string {
  return text.slice(0, at) + change(text[at]!) + text.slice(at + 1);
}
