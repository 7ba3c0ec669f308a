import { createHmac, timingSafeEqual } from 'node:crypto';
import { Webhooks } from '@octokit/webhooks';
import { SigningKey, verifySignature } from 'nestjs-payments';
import { Stripe } from 'stripe-latest';
import { SECRET, delivery, hmac, signature } from '../load/webhook-requests.ts';
import type { Contender, Row, Scale, Table } from '../rounds/row.ts';
import { atMost } from '../rounds/row.ts';

const OURS = 'nestjs-payments (SHA-512)';
const FROM_TEXT = 'nestjs-payments, secret as a string';
const BARE_512 = 'bare HMAC-SHA512';
const BARE_256 = 'bare HMAC-SHA256';
const STRIPE = 'stripe-node constructEvent (SHA-256)';
const STRIPE_HEADER = 'stripe-node verifyHeader (SHA-256)';
const OCTOKIT = '@octokit/webhooks verify (SHA-256)';

const SIZES = [
  { name: '300 bytes', bytes: 300, bodies: 1000 },
  { name: '20 kB', bytes: 20_000, bodies: 100 },
  { name: '1 MB', bytes: 1_000_000, bodies: 4 },
];

interface Signed {
  readonly body: Buffer;
  /** Signature headers in the formats of the payments service, Stripe and GitHub. */
  readonly payments: string;
  readonly stripe: string;
  readonly github: string;
}

export const verify: Row = {
  name: 'verify',
  title: 'Verifying a signature',
  rounds: 11,
  open: async (scale) => SIZES.map((size) => tableOf(size, scale)),
};

function tableOf({ name, bytes, bodies }: (typeof SIZES)[number], scale: Scale): Table {
  const signed = Array.from({ length: bodies }, () => sign(bytes));
  const keys = [new SigningKey(SECRET)];
  const octokit = new Webhooks({ secret: SECRET });
  // Verification makes no request, so the key is not used.
  const { webhooks } = new Stripe('sk_bench');
  const header = webhooks.signature!;
  const synchronous = (name: string, check: (one: Signed) => unknown): Contender => ({
    name,
    measure: async () => ({ value: perCall(signed, check, scale) }),
  });
  const asynchronous = (name: string, check: (one: Signed) => Promise<unknown>): Contender => ({
    name,
    measure: async () => ({ value: await perAsyncCall(signed, check, scale) }),
  });
  const contenders = [
    synchronous(OURS, ({ body, payments }) => verifySignature(body, payments, keys)),
    synchronous(FROM_TEXT, ({ body, payments }) => verifySignature(body, payments, [SECRET])),
    synchronous(BARE_512, ({ body, payments }) => bare('sha512', body, payments)),
    synchronous(BARE_256, ({ body, github }) => bare('sha256', body, github)),
    synchronous(STRIPE, ({ body, stripe }) => webhooks.constructEvent(body, stripe, SECRET)),
    synchronous(STRIPE_HEADER, ({ body, stripe }) => header.verifyHeader(body, stripe, SECRET)),
    asynchronous(OCTOKIT, async ({ body, github }) =>
      assertValid(await octokit.verify(body.toString(), github)),
    ),
  ];
  return {
    title: `${name}, one at a time`,
    unit: 'µs',
    better: 'lower',
    contenders,
    targets: [
      atMost(1.15, OURS, BARE_512, 'at most 1.15 times bare createHmac and timingSafeEqual'),
      atMost(1, OURS, STRIPE, 'faster than stripe-node'),
      atMost(1, OURS, OCTOKIT, 'faster than @octokit/webhooks'),
    ],
    notes: [
      'nestjs-payments verifies HMAC-SHA512, because the payments service signs with HMAC-SHA512. The other ' +
        'packages verify HMAC-SHA256. The two lines of a bare HMAC show the cost of this difference. Every ' +
        'contender gets the raw bytes of a body. constructEvent also parses the body, and @octokit/webhooks ' +
        'needs the body as a string. In the first row, the SigningKey is created once, as the module creates ' +
        'it once for each secret. In the second row, each call creates a SigningKey.',
    ],
  };
}

function sign(bytes: number): Signed {
  const { body } = delivery('payments', bytes);
  return {
    body,
    payments: signature('payments', body)['x-webhook-signature']!,
    stripe: signature('stripe', body)['stripe-signature']!,
    github: `sha256=${hmac('sha256', body)}`,
  };
}

function bare(algorithm: 'sha256' | 'sha512', body: Buffer, header: string): void {
  const expected = createHmac(algorithm, SECRET).update(body).digest();
  assertValid(timingSafeEqual(expected, Buffer.from(header.slice(7), 'hex')));
}

function assertValid(valid: boolean): void {
  if (!valid) throw new Error('A valid signature was rejected.');
}

/** The duration of a round for each contender, in milliseconds. */
function roundMs(scale: Scale): number {
  return scale.quick ? 15 : 120;
}

/** Microseconds per call of a synchronous function, over all bodies. */
function perCall(signed: readonly Signed[], check: (one: Signed) => unknown, scale: Scale): number {
  const start = performance.now();
  let calls = 0;
  let now = start;
  for (; now - start < roundMs(scale); now = performance.now()) {
    for (const one of signed) check(one);
    calls += signed.length;
  }
  return ((now - start) / calls) * 1000;
}

/** Microseconds per call of an asynchronous function, one call at a time, over all bodies. */
async function perAsyncCall(
  signed: readonly Signed[],
  check: (one: Signed) => Promise<unknown>,
  scale: Scale,
): Promise<number> {
  const start = performance.now();
  let calls = 0;
  let now = start;
  for (; now - start < roundMs(scale); now = performance.now()) {
    for (const one of signed) await check(one);
    calls += signed.length;
  }
  return ((now - start) / calls) * 1000;
}
