/**
 * Kinds of records that the processes and operators of one inbox share.
 *
 * - `process`: the report of a process about itself, under an id that does not change while the process runs.
 * - `job`: a redrive that continues after a restart.
 * - `audit`: an action of an operator.
 * - `view`: a view of a payload by an operator.
 * - `acknowledgement`: the note of an operator on a group of failures.
 */
export type RecordKind = 'process' | 'job' | 'audit' | 'view' | 'acknowledgement';

const DAY_MS = 86_400_000;

/** Maximum length of the key of a record, in characters. */
export const MAX_KEY = 200;

/** How long after its last change `InboxStore.prune` deletes a record, in milliseconds. */
export const RECORD_RETENTION_MS: Readonly<Record<RecordKind, number>> = {
  process: 3_600_000,
  job: 30 * DAY_MS,
  audit: 90 * DAY_MS,
  view: 90 * DAY_MS,
  acknowledgement: 90 * DAY_MS,
};

/**
 * The kinds with a limited number of records: `InboxStore.prune` deletes all records of such a kind except the
 * {@link MAX_RECORDS} that changed last. Actions and views are separate kinds, so that many views do not cause the
 * deletion of actions.
 */
export const LIMITED_RECORDS: readonly RecordKind[] = ['audit', 'view'];
export const MAX_RECORDS = 10_000;

export interface StoredRecord {
  readonly key: string;
  /** 1 for a new record; increases by one with each change. */
  readonly version: number;
  readonly body: string;
  /** When the record was last changed. */
  readonly changedAt: Date;
  /** Milliseconds since the last change, by the store clock. */
  readonly ageMs: number;
}

/** Stores small texts that the processes and operators of one inbox share. Every operation is atomic. */
export interface RecordStore {
  /**
   * Stores or replaces a record. With `ifVersion`, changes the record only if its stored version is `ifVersion`; 0
   * means that no record with this key is stored. Returns the new version, or `null` if nothing was changed.
   *
   * The key has 1 to 200 characters. The body is a text of at most 64 KiB, by convention JSON, without payloads,
   * secrets and tokens.
   */
  put(record: {
    readonly kind: RecordKind;
    readonly key: string;
    readonly body: string;
    readonly ifVersion?: number;
  }): Promise<number | null>;

  /**
   * Returns at most `limit` (1 to 1,000) records of a kind: those that changed last, the latest change first. With
   * `containing`, returns only records whose body contains this text.
   */
  list(kind: RecordKind, limit: number, containing?: string): Promise<StoredRecord[]>;

  /** Removes a record if it is stored. A record that is stored later with the same key begins at version 1 again. */
  remove(kind: RecordKind, key: string): Promise<void>;
}

/** Parses the body of a record. Returns `undefined` if the body is not the JSON text of an object. */
export function parsedBody({ body }: Pick<StoredRecord, 'body'>): object | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}
