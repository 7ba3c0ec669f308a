import { boundedError } from '../delivery.history.js';
import type { Lease } from '../store.contract.js';
import type { ConnectionSource } from './connection.source.js';
import type { Value } from './database.connection.js';
import { DONE, EXTENDED, FAILED, leaseValues, RELEASED, whereHeld } from './lease.statements.js';
import { toStored } from './stored.text.js';

/** What the holder of a lease may do, for as long as it is held. Each tells whether it was. */
export class DeliverySettlement {
  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#change(lease, EXTENDED, leaseMs);
  }

  complete(lease: Lease): Promise<boolean> {
    return this.#change(lease, DONE);
  }

  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    return this.#change(lease, FAILED, toStored(boundedError(failure.error)), failure.retryInMs);
  }

  release(lease: Lease, dueInMs: number): Promise<boolean> {
    return this.#change(lease, RELEASED, dueInMs);
  }

  async #change(lease: Lease, change: string, ...values: Value[]): Promise<boolean> {
    const text = whereHeld(this.schema, change);
    const [row] = await this.source.query(text, [...leaseValues(lease), ...values]);
    return row!['changed'] === '1';
  }
}
