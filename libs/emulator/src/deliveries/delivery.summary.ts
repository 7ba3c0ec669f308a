import type { DeliverySearch } from './delivery.inputs.js';
import type { DeliveryRecord } from './delivery.record.js';

/** An attempt without its bytes: a body may be as large as a request, and a page shows many. */
export type DeliverySummary = Omit<DeliveryRecord, 'request' | 'answer'> & {
  /** Where it was sent; undefined where it was not. */
  readonly url: string | undefined;
  /** The status of the answer, where one came. */
  readonly status: number | undefined;
};

/** As much of the log as a page shows, the newest first. */
export interface DeliveryPage {
  readonly deliveries: readonly DeliverySummary[];
  /** Whether there are older ones that match. */
  readonly more: boolean;
}

/** A copy of what a list shows of an attempt. */
export function summarise({ request, answer, ...record }: DeliveryRecord): DeliverySummary {
  return { ...structuredClone(record), url: request?.url, status: answer?.status };
}

/** Whether an attempt is among those searched for. */
export function matches(
  record: DeliveryRecord,
  { companyId, state, search }: Pick<DeliverySearch, 'companyId' | 'state' | 'search'>,
): boolean {
  if (companyId !== undefined && record.companyId !== companyId) return false;
  if (state !== undefined && record.state !== state) return false;
  const part = search?.trim().toLowerCase() ?? '';
  const { eventId, eventType, transactionId = '' } = record;
  return [eventId, eventType, transactionId].some((text) => text.toLowerCase().includes(part));
}
