import { DEFAULT_COMPANY } from 'nestjs-payments';
import type { Company } from 'nestjs-payments';
import { paymentEvent, signedRequest } from 'nestjs-payments/testing';
import type { SignedRequest } from 'nestjs-payments/testing';

/** The fields of a company that sign a webhook request and choose its path. */
export type SigningCompany = Pick<Company, 'webhookSecret'> & Partial<Pick<Company, 'id'>>;

/** Fields of the envelope; they may be invalid. Defaults: those of `paymentEvent('transaction.completed')`. */
export interface EnvelopeFields {
  id?: string;
  eventType?: string;
  timestamp?: string;
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

export type SignedWebhook = SignedRequest;

/** Returns a signed webhook request for a company, to the default `webhookPath`. The body may be invalid. */
export function signedWebhook(
  { webhookSecret, id = DEFAULT_COMPANY }: SigningCompany,
  payload: EnvelopeFields | string | Uint8Array = {},
): SignedWebhook {
  const secret = [webhookSecret].flat()[0]!;
  const path = id === DEFAULT_COMPANY ? '/webhooks/payments' : `/webhooks/payments/${id}`;
  const raw = typeof payload === 'string' || payload instanceof Uint8Array;
  const body = raw
    ? payload
    : JSON.stringify({ ...paymentEvent('transaction.completed'), ...payload });
  return signedRequest(body, { secret, path });
}
