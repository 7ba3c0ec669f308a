import { hash } from 'node:crypto';
import type { IncomingEvent, StoreReceipt } from '../inbox-store.js';
import type { ConnectionSource } from './connection.source.js';
import type { Prepared } from './database.connection.js';
import { PostgresInboxError } from './database.failure.js';
import {
  insertStatement,
  insertValues,
  knownStatement,
  knownValues,
} from './receipt.statements.js';
import { fromStored, toStored } from './stored.text.js';

/** An event as its row will be. */
export interface EventRow {
  readonly place: number;
  readonly event: IncomingEvent;
  readonly id: string;
  /** The dedupe key, where it is not the id. */
  readonly ownKey: string | null;
  /** SHA-256 of the dedupe key, whichever it is. */
  readonly key: Buffer;
  readonly ordering: string | null;
  readonly digest: Buffer;
}

/** Two rounds are enough but where tombstones are pruned, or events of the same keys stored, between them. */
const MAX_ROUNDS = 5;

/**
 * Stores events of any number of receives in one statement, and says what became of each. Events that others
 * store at the same time, or that come twice in one batch, are found and reported.
 */
export class ReceiptBatch {
  readonly #insertion: Prepared;
  readonly #lookup: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
  ) {
    this.#insertion = insertStatement(schema);
    this.#lookup = knownStatement(schema);
  }

  async store(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts: StoreReceipt[] = [];
    let open = events.map(rowOf);
    for (let round = 0; open.length > 0; round += 1) {
      if (round === MAX_ROUNDS) {
        throw new PostgresInboxError(
          'The PostgreSQL inbox could neither store an event nor find the one that is in its way.',
          null,
        );
      }
      const stored = await this.#insert(firstOfEachKey(open));
      for (const { place, event } of stored) receipts[place] = { outcome: 'stored', id: event.id };
      const rest = open.filter((row) => receipts[row.place] === undefined);
      for (const [row, receipt] of await this.#known(rest)) receipts[row.place] = receipt;
      open = rest.filter((row) => receipts[row.place] === undefined);
    }
    return receipts;
  }

  /** Those that were new. */
  async #insert(rows: readonly EventRow[]): Promise<EventRow[]> {
    const stored = await this.source.query(this.#insertion, insertValues(rows));
    return stored.map(({ ord }) => rows[Number(ord) - 1]!);
  }

  async #known(rows: readonly EventRow[]): Promise<[EventRow, StoreReceipt][]> {
    if (rows.length === 0) return [];
    const known = await this.source.query(this.#lookup, knownValues(rows));
    return known.map(({ ord, id, digest }) => {
      const row = rows[Number(ord) - 1]!;
      const conflict = id === row.id && digest !== row.digest.toString('hex');
      return [row, { outcome: conflict ? 'conflict' : 'duplicate', id: fromStored(id!) }];
    });
  }
}

function rowOf(event: IncomingEvent, place: number): EventRow {
  const { company, orderingKey } = event;
  const id = toStored(event.id);
  const dedupeKey = toStored(event.dedupeKey);
  return {
    place,
    event,
    id,
    ownKey: dedupeKey === id ? null : dedupeKey,
    key: sha256(dedupeKey),
    ordering:
      orderingKey === null
        ? null
        : sha256(`${company}\n${toStored(orderingKey)}`)
            .subarray(0, 16)
            .toString('hex'),
    digest: sha256(event.raw),
  };
}

/** The first of each id and of each dedupe key; the others wait to see what becomes of it. */
function firstOfEachKey(rows: readonly EventRow[]): EventRow[] {
  const taken = new Set<string>();
  return rows.filter(({ event, id, key }) => {
    const byId = `i ${event.company} ${id}`;
    const byKey = `d ${event.company} ${key.toString('latin1')}`;
    if (taken.has(byId) || taken.has(byKey)) return false;
    taken.add(byId).add(byKey);
    return true;
  });
}

function sha256(data: string | Buffer): Buffer {
  return hash('sha256', data, 'buffer');
}
