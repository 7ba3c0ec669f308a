import { EmulatorError } from '../emulator.errors.js';
import type { DeliveryFilter } from './delivery.inputs.js';
import type { DeliveryRecord } from './delivery.record.js';

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

  clear(): void {
    this.#entries.clear();
  }
}
