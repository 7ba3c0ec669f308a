import { EmulatorError } from '../emulator-errors.js';
import type { DeliveryFilter, DeliverySearch } from './delivery-inputs.js';
import type { DeliveryPage } from './delivery-summary.js';
import { matches, summarise } from './delivery-summary.js';
import type { DeliveryAttempt, DeliveryState } from './delivery-attempt.js';

/** An attempt with the event's original bytes, which a redelivery sends again. */
export interface LoggedDelivery {
  readonly record: DeliveryAttempt;
  readonly original: Uint8Array;
}

/** The delivery log. If the log is full, a new attempt replaces the oldest attempt. */
export class DeliveryLog {
  readonly #entries = new Map<string, LoggedDelivery>();

  constructor(private readonly size: number) {}

  add(entry: LoggedDelivery): void {
    this.#entries.set(entry.record.id, entry);
    for (const id of this.#entries.keys()) {
      if (this.#entries.size <= this.size) break;
      this.#entries.delete(id);
    }
  }

  /** @throws EmulatorError `not_found` */
  get(id: string): LoggedDelivery {
    const entry = this.#entries.get(id);
    if (entry) return entry;
    throw new EmulatorError(
      'not_found',
      `there is no delivery ${id} in the log, which keeps the last ${this.size} attempts (option logSize)`,
    );
  }

  /** Returns copies of the matching attempts, in the order of their creation. */
  list(filter: DeliveryFilter = {}): DeliveryAttempt[] {
    const { limit, ...fields } = filter;
    const criteria = Object.entries(fields).filter(([, value]) => value !== undefined);
    const found: DeliveryAttempt[] = [];
    for (const { record } of this.#entries.values()) {
      if (criteria.every(([key, value]) => record[key as keyof DeliveryAttempt] === value)) {
        found.push(record);
      }
    }
    return found.slice(limit === undefined ? 0 : -limit).map((record) => structuredClone(record));
  }

  /**
   * Returns one page of the attempts that match the criteria, newest first. Attempts are ordered by the time of
   * sending. An attempt that has not been sent is ordered by the time of its creation.
   */
  search({ limit = 50, before, ...criteria }: DeliverySearch = {}): DeliveryPage {
    const newestFirst = [...this.#entries.values()]
      .map(({ record }) => record)
      .toReversed()
      .toSorted((a, b) => compareTexts(timeOf(b), timeOf(a)));
    // If the log has removed the attempt `before`, it has also removed all older attempts.
    const start = before === undefined ? 0 : newestFirst.findIndex(({ id }) => id === before) + 1;
    const older = before !== undefined && start === 0 ? [] : newestFirst.slice(start);
    const found = older.filter((record) => matches(record, criteria)).slice(0, limit + 1);
    return { deliveries: found.slice(0, limit).map(summarise), more: found.length > limit };
  }

  /** Counts the attempts per state. States without attempts are omitted. */
  counts(): Partial<Record<DeliveryState, number>> {
    const counts: Partial<Record<DeliveryState, number>> = {};
    for (const { record } of this.#entries.values()) {
      counts[record.state] = (counts[record.state] ?? 0) + 1;
    }
    return counts;
  }

  clear(): void {
    this.#entries.clear();
  }
}

/**
 * Returns the time that the emulator's page shows for an attempt. The page sorts attempts by this time, because the
 * order of sending can differ from the order of creation.
 */
function timeOf({ sentAt, createdAt }: DeliveryAttempt): string {
  return sentAt ?? createdAt;
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
