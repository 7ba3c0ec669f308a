// Well-formed requests for companies that do not exist, and for other spellings of existing companies.
import { COMPANIES, PAYLOAD_MARKER, sign, validRequest } from '../webhook-requests.ts';
import type { Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { withLength } from '../request-bytes.ts';
import type { SeededRandom } from '../../chaos/seeded-random.ts';
import { REJECTED } from '../tally.ts';

const BODY = Buffer.from(JSON.stringify({ id: 'unknown', note: PAYLOAD_MARKER }));

/** Path segments that are not the id of a company. For some, only decoding shows this. */
const SEGMENTS: readonly ((random: SeededRandom) => string)[] = [
  (random) => random.hex(32),
  (random) => random.hex(1),
  (random) => random.hex(100),
  (random) => random.hex(101),
  (random) => random.hex(5000),
  (random) =>
    random.pick(['.', '..', '%2e%2e', '%2E.', '...', '%00', 'acme%00', 'acme%20', 'acme%0a', '%']),
  (random) =>
    random.pick(['acme;x', 'acme.', 'acme%2F', '%2Facme', 'acme%2F..%2Fduka', 'acme,duka']),
  (random) =>
    random.pick(['__proto__', 'constructor', 'toString', 'null', 'undefined', '%zz', '%ff']),
  (random) => random.pick(['acme/extra', '', '*', ':company', '%25acme', '%c3%a4', '%ed%a0%80']),
];

export const family: Family = {
  name: 'unknown companies',
  lanes: 6,
  async attempt({ port, random, tally }, n) {
    if (n % 10 === 0) {
      // The directory ignores case and finds the company for this spelling, and the signature is the company's.
      const company = random.pick(COMPANIES);
      const id = random.pick([company.id.toUpperCase(), swapCase(company.id)]);
      const respelled = {
        ...validRequest(company, `spelling-${n}`),
        path: `/webhooks/payments/${id}`,
      };
      tally.check(
        'another spelling of a company',
        await exchange(port, [withLength(respelled)]),
        REJECTED,
      );
      return;
    }
    const segment = SEGMENTS[n % SEGMENTS.length]!(random);
    const path = `/webhooks/payments/${segment}`;
    const signature = sign(BODY, random.hex(8));
    const response = await exchange(port, [withLength({ path, signature, body: BODY })]);
    tally.check(`company ${segment.slice(0, 40)}`, response, REJECTED);
  },
};

function swapCase(text: string): string {
  return text.replace(/^./, (first) =>
    first === first.toUpperCase() ? first.toLowerCase() : first.toUpperCase(),
  );
}
