import { boundedError } from '../delivery-history.js';
import type { Lease } from '../inbox-store.js';
import type { ConnectionSource } from './connection.source.js';
import { prepared } from './database.connection.js';
import type { Prepared, Value } from './database.connection.js';
import { DONE, EXTENDED, FAILED, leaseValues, RELEASED, whereHeld } from './lease.statements.js';
import { SettlementQueue } from './settlement.queue.js';
import { toStored } from './stored.text.js';

/** How an attempt ended: `failure` is `null` where it succeeded. */
interface Ended {
  readonly lease: Lease;
  readonly failure: { readonly error: string; readonly retryInMs: number | null } | null;
}

/** What the holder of a lease may do, for as long as it is held. Each tells whether it was. */
export class DeliverySettlement {
  readonly #ended = new SettlementQueue<Ended>(
    (all) => this.#settleTogether(all),
    (one) => this.#settleAlone(one),
  );

  readonly #settle: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {
    this.#settle = prepared(
      `SELECT o_place FROM ${schema}.settle($1::text[], $2::text[], $3::text[], $4::bigint[],
                                            $5::text[], $6::text[], $7::float8[])`,
    );
  }

  extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#change(lease, EXTENDED, leaseMs);
  }

  complete(lease: Lease): Promise<boolean> {
    return this.#ended.settle({ lease, failure: null });
  }

  fail(
    lease: Lease,
    { error, retryInMs }: { error: string; retryInMs: number | null },
  ): Promise<boolean> {
    const failure = { error: toStored(boundedError(error)), retryInMs };
    return this.#ended.settle({ lease, failure });
  }

  release(lease: Lease, dueInMs: number): Promise<boolean> {
    return this.#change(lease, RELEASED, dueInMs);
  }

  async #settleTogether(all: readonly Ended[]): Promise<Set<number>> {
    const leases = all.map(({ lease }) => leaseValues(lease));
    const column = (place: number): string[] => leases.map((values) => values[place]!);
    const settled = await this.source.query(this.#settle, [
      ...[0, 1, 2, 3].map(column),
      all.map(stateAfter),
      all.map(({ failure }) => failure?.error ?? null),
      all.map(({ failure }) => failure?.retryInMs ?? null),
    ]);
    return new Set(settled.map((row) => Number(row['o_place']) - 1));
  }

  #settleAlone({ lease, failure }: Ended): Promise<boolean> {
    if (failure === null) return this.#change(lease, DONE);
    return this.#change(lease, FAILED, failure.error, failure.retryInMs);
  }

  async #change(lease: Lease, change: string, ...values: Value[]): Promise<boolean> {
    const text = whereHeld(this.schema, change);
    const [row] = await this.source.query(text, [...leaseValues(lease), ...values]);
    return row!['changed'] === '1';
  }
}

function stateAfter({ failure }: Ended): string {
  if (failure === null) return 'done';
  return failure.retryInMs === null ? 'dead' : 'pending';
}
