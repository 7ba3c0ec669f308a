import type { ClaimedDelivery } from '../inbox-store.js';
import type { ConnectionSource } from './connection.source.js';
import { prepared } from './database.connection.js';
import type { Prepared } from './database.connection.js';
import { epochMs, toBody, toDate } from './stored.rows.js';
import { fromStored, toStored } from './stored.text.js';

/** One claim locks the ordering keys it leases, and the database's table of locks is finite. */
const MAX_CLAIM = 500;

/** Leases due deliveries, and tells when the next one is due. */
export class DeliveryClaims {
  readonly #claim: Prepared;
  readonly #nextDue: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
  ) {
    this.#claim =
      prepared(`SELECT o_company, o_id, o_handler, o_token, o_attempt, o_newer, o_taken_over,
        ${epochMs('o_received_at')} AS received_ms,
        ${epochMs('clock_timestamp() - o_received_at')} AS age_ms, encode(o_raw, 'base64') AS raw
      FROM ${schema}.claim($1::text[], $2::integer, $3::float8)`);
    this.#nextDue = prepared(`SELECT ${schema}.next_due_in_ms($1::text[]) AS ms`);
  }

  async claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]> {
    const limit = Math.min(request.limit, MAX_CLAIM);
    if (limit <= 0 || request.handlers.length === 0) return [];
    const rows = await this.source.query(this.#claim, [
      request.handlers.map(toStored),
      limit,
      request.leaseMs,
    ]);
    return rows.map((row) => ({
      company: fromStored(row['o_company']!),
      id: fromStored(row['o_id']!),
      handler: fromStored(row['o_handler']!),
      token: Number(row['o_token']),
      attempt: Number(row['o_attempt']),
      receivedAt: toDate(row['received_ms']!),
      ageMs: Math.max(0, Number(row['age_ms'])),
      // Only events whose deliveries are all finished are pruned, so a claimed one has its body.
      raw: toBody(row['raw']!),
      newerHandled: row['o_newer'] === 't',
      takenOver: row['o_taken_over'] === 't',
    }));
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const [row] = await this.source.query(this.#nextDue, [handlers.map(toStored)]);
    const ms = row!['ms'];
    return ms === null || ms === undefined ? null : Number(ms);
  }
}
