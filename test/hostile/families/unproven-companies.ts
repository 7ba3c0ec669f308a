// Well-formed deliveries for companies that do not exist, and for other spellings of one that does.
import { COMPANIES, PAYLOAD_MARKER, sign, validDelivery } from '../deliveries.ts';
import type { Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { withLength } from '../requests.ts';
import type { SeededRandom } from '../../../apps/demo/src/chaos/seeded-random.ts';
import { REFUSED } from '../tally.ts';

const BODY = Buffer.from(JSON.stringify({ id: 'unproven', note: PAYLOAD_MARKER }));

/** Segments that name no company, some of them after the server has decoded them. */
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
  name: 'unproven companies',
  lanes: 6,
  async attempt({ port, random, tally }, n) {
    if (n % 10 === 0) {
      // Signed with the secret of the company that a case-insensitive directory finds for this spelling.
      const company = random.pick(COMPANIES);
      const id = random.pick([company.id.toUpperCase(), swapCase(company.id)]);
      const delivery = {
        ...validDelivery(company, `spelling-${n}`),
        path: `/webhooks/payments/${id}`,
      };
      tally.judge(
        'another spelling of a company',
        await exchange(port, [withLength(delivery)]),
        REFUSED,
      );
      return;
    }
    const segment = SEGMENTS[n % SEGMENTS.length]!(random);
    const path = `/webhooks/payments/${segment}`;
    const signature = sign(BODY, random.hex(8));
    const answer = await exchange(port, [withLength({ path, signature, body: BODY })]);
    tally.judge(`company ${segment.slice(0, 40)}`, answer, REFUSED);
  },
};

function swapCase(text: string): string {
  return text.replace(/^./, (first) =>
    first === first.toUpperCase() ? first.toLowerCase() : first.toUpperCase(),
  );
}
