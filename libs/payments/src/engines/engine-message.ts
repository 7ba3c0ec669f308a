import type { Companies } from '../companies/company.js';
import { PaymentsError } from '../errors/payments-error.js';
import { parseEnvelope, transactionOf } from '../events/payment-event.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { VerifiedEvent } from '../inbox/receive/event-receiver.js';
import { parseSignatures, requireMatch, signBody } from '../webhook/signature.js';
import type { EngineAttributes, EngineMessage, TakenMessage } from './engine.js';

/** Facts about an event that are not in its body. */
interface ReceivedFacts {
  readonly company: string;
  readonly origin: EngineAttributes['origin'];
  readonly traceparent: string | null;
}

/**
 * Creates the message of an event. Signs the body with the current webhook secret of the company, because the inbox
 * stores no signature, and an event that a poll found has no signature.
 *
 * @throws PaymentsError `company_unknown` if the company does not exist any more; `directory_unavailable`.
 */
export async function toMessage(
  event: PaymentEvent,
  body: Uint8Array,
  { company, origin, traceparent }: ReceivedFacts,
  companies: Companies,
): Promise<EngineMessage> {
  const key = (await requireCompany(companies, company)).signingKeys[0]!;
  const subject = transactionOf(event);
  const id = `${company}/${event.id}`;
  const partitionkey = subject === null ? id : `${company}/${subject}`;
  const attributes: EngineAttributes = Object.freeze({
    specversion: '1.0',
    id: event.id,
    source: `/payments/${company}`,
    type: event.eventType,
    time: new Date(event.timestamp).toISOString(),
    datacontenttype: 'application/json',
    company,
    signature: signBody(body, key),
    origin,
    partitionkey,
    ...(subject !== null && { subject }),
    ...(traceparent !== null && { traceparent }),
  });
  return Object.freeze({ id, key: partitionkey, attributes, body });
}

/**
 * Returns the event of a message.
 *
 * @param arrivedAt when the message arrived, on the runtime's monotonic clock
 * @param verify whether to check the signature
 * @throws PaymentsError `company_unknown`, `directory_unavailable`, `signature_missing`, `signature_malformed`,
 *   `signature_mismatch` or `payload_invalid`.
 */
export async function toEvent(
  { attributes, body }: TakenMessage,
  arrivedAt: number,
  companies: Companies,
  verify: boolean,
): Promise<VerifiedEvent> {
  const { company: id = '', signature, origin, traceparent } = attributes;
  const { id: company, signingKeys } = await requireCompany(companies, id);
  if (verify) requireMatch(body, parseSignatures(signature), signingKeys);
  const raw = Buffer.from(body);
  const headers = traceparent === undefined ? {} : { traceparent };
  const source = origin === 'poll' ? 'poll' : 'webhook';
  return new VerifiedEvent(company, parseEnvelope(raw), raw, arrivedAt, headers, source);
}

async function requireCompany(companies: Companies, id: string) {
  const company = await companies.find(id);
  if (company !== undefined) return company;
  throw new PaymentsError(
    'company_unknown',
    'No company of this application has the id that the message of an event names. Add the company to "companies".',
  );
}
