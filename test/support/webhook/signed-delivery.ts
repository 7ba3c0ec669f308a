import { DEFAULT_COMPANY } from 'nestjs-payments';
import type { Company } from 'nestjs-payments';
import { paymentEvent, signedRequest } from 'nestjs-payments/testing';
import type { SignedRequest } from 'nestjs-payments/testing';

/** What a test needs of a company to sign: the current secret and, for a company with a path of its own, the id. */
export type SigningCompany = Pick<Company, 'webhookSecret'> & Partial<Pick<Company, 'id'>>;

/** The fields of the envelope, in any form. Defaults: those of `paymentEvent('transaction.completed')`. */
export interface DeliveryPayload {
  id?: string;
  eventType?: string;
  timestamp?: string;
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

export type SignedDelivery = SignedRequest;

/** A signed request of a company to the default `webhookPath`, well-formed or not. */
export function signedDelivery(
  { webhookSecret, id = DEFAULT_COMPANY }: SigningCompany,
  payload: DeliveryPayload | string | Uint8Array = {},
): SignedDelivery {
  const secret = [webhookSecret].flat()[0]!;
  const path = id === DEFAULT_COMPANY ? '/webhooks/payments' : `/webhooks/payments/${id}`;
  const raw = typeof payload === 'string' || payload instanceof Uint8Array;
  const body = raw
    ? payload
    : JSON.stringify({ ...paymentEvent('transaction.completed'), ...payload });
  return signedRequest(body, { secret, path });
}
