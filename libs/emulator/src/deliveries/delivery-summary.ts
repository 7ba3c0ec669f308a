import type { DeliverySearch } from './delivery-inputs.js';
import type { DeliveryAttempt } from './delivery-attempt.js';

/** A logged attempt without headers and bodies. The emulator's page shows many attempts, and bodies can be large. */
export type DeliverySummary = Omit<DeliveryAttempt, 'request' | 'response'> & {
  /** The URL of the webhook request; undefined if the emulator sent none. */
  readonly url: string | undefined;
  /** The status of the response; undefined without a response. */
  readonly status: number | undefined;
};

/** One page of the delivery log, newest attempt first. */
export interface DeliveryPage {
  readonly deliveries: readonly DeliverySummary[];
  /** Whether there are older attempts that match the filter. */
  readonly more: boolean;
}

export function summarise({ request, response, ...record }: DeliveryAttempt): DeliverySummary {
  return { ...structuredClone(record), url: request?.url, status: response?.status };
}

export function matches(
  record: DeliveryAttempt,
  { companyId, state, search }: Pick<DeliverySearch, 'companyId' | 'state' | 'search'>,
): boolean {
  if (companyId !== undefined && record.companyId !== companyId) return false;
  if (state !== undefined && record.state !== state) return false;
  const part = search?.trim().toLowerCase() ?? '';
  const { eventId, eventType, transactionId = '', externalReference = '' } = record;
  return [eventId, eventType, transactionId, externalReference].some((text) =>
    text.toLowerCase().includes(part),
  );
}
