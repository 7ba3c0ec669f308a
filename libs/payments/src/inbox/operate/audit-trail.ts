import { randomUUID } from 'node:crypto';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { InboxStore, RecordKind } from '../store/inbox-store.js';
import { MAX_KEY, parsedBody } from '../store/shared-records.js';
import { assertText, assertWhole } from '../store/stored-event.js';

/** What an operator did, or which payload an operator viewed. An entry must not contain payloads, secrets or tokens. */
export interface AuditEntry {
  /** Name of the operator; `null` if it is not known. */
  readonly who: string | null;
  /** What the operator did, in words, such as `paused handler "book"`. */
  readonly text: string;
  /** The event whose payload was viewed; `null` for an action. */
  readonly event: { readonly company: string; readonly id: string } | null;
  /** `unknown` means that the action was started, and that its result is not stored. */
  readonly outcome: 'done' | 'failed' | 'unknown';
  /** Why the action was rejected or failed; `null` unless the outcome is `failed`. */
  readonly error: string | null;
}

export interface StoredAuditEntry extends AuditEntry {
  /** Unique. The ids of the entries that one process creates are in the order of their creation. */
  readonly id: string;
  /** When the entry was recorded, by the clock of the process that recorded it. */
  readonly at: Date;
}

/** The audit entries of all processes. Actions and views are stored separately. */
export class AuditTrail {
  readonly #process = randomUUID();
  #count = 0;

  constructor(
    private readonly store: InboxStore,
    private readonly runtime: Pick<PaymentsRuntime, 'now'>,
  ) {}

  /** @throws TypeError if `replaces` is out of bounds. */
  async record(
    { who, text, event, outcome, error }: AuditEntry,
    replaces?: string,
  ): Promise<string> {
    const at = new Date(this.runtime.now()).toISOString();
    this.#count += 1;
    const key = replaces ?? `${at} ${String(this.#count).padStart(9, '0')} ${this.#process}`;
    assertText('replaces', key, MAX_KEY);
    await this.store.records.put({
      kind: event === null ? 'audit' : 'view',
      key,
      body: JSON.stringify({ at, who, text, event, outcome, error }),
    });
    return key;
  }

  /** @throws TypeError if `limit` is out of bounds. */
  async list(show: 'all' | 'actions' | 'views', limit: number): Promise<StoredAuditEntry[]> {
    assertWhole('limit', limit, { max: 1000, unit: 'entries' });
    const kinds: RecordKind[] = show === 'all' ? ['audit', 'view'] : [KINDS[show]];
    const records = await Promise.all(
      kinds.map(async (kind) => this.store.records.list(kind, limit)),
    );
    return records
      .flat()
      .toSorted((a, b) => +b.changedAt - +a.changedAt || (a.key < b.key ? 1 : -1))
      .slice(0, limit)
      .flatMap((record) => {
        const entry = parsedBody(record) as (AuditEntry & { readonly at: string }) | undefined;
        return entry === undefined ? [] : [{ ...entry, id: record.key, at: new Date(entry.at) }];
      });
  }
}

const KINDS = { actions: 'audit', views: 'view' } as const;
