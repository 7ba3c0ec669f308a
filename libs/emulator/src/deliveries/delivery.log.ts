import { EmulatorError } from '../emulator.errors.js';
import type { DeliveryFilter } from './delivery.inputs.js';
import type { DeliverySearch } from './delivery.inputs.js';
import type { DeliveryPage } from './delivery.summary.js';
import { matches, summarise } from './delivery.summary.js';
import type { DeliveryRecord, DeliveryState } from './delivery.record.js';

/** An attempt with the event's bytes before any tampering, for a redelivery. */
export interface LoggedDelivery {
  readonly record: DeliveryRecord;
  readonly original: Uint8Array;
}

/** The delivery log: bounded, the oldest attempt leaves first. */
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
      `there is no delivery ${id} in the log, which holds the last ${this.size} (option logSize)`,
    );
  }

  /** Copies, in the order they came to be. */
  list(filter: DeliveryFilter = {}): DeliveryRecord[] {
    const { limit, ...wanted } = filter;
    const asked = Object.entries(wanted).filter(([, value]) => value !== undefined);
    const found: DeliveryRecord[] = [];
    for (const { record } of this.#entries.values()) {
      if (asked.every(([key, value]) => record[key as keyof DeliveryRecord] === value)) {
        found.push(record);
      }
    }
    return found.slice(limit === undefined ? 0 : -limit).map((record) => structuredClone(record));
  }

  /** The newest that match, the newest first: as much as a page shows. */
  search({ limit = 50, before, ...wanted }: DeliverySearch = {}): DeliveryPage {
    const newestFirst = [...this.#entries.values()].toReversed().map(({ record }) => record);
    // Whatever was older than an attempt that the log let go is gone as well.
    const from = before === undefined ? 0 : newestFirst.findIndex(({ id }) => id === before) + 1;
    const left = before !== undefined && from === 0 ? [] : newestFirst.slice(from);
    const found = left.filter((record) => matches(record, wanted)).slice(0, limit + 1);
    return { deliveries: found.slice(0, limit).map(summarise), more: found.length > limit };
  }

  /** How many attempts are in each state; a state without any is left out. */
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
