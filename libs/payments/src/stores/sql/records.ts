import type { RecordKind, RecordStore, StoredRecord } from '../../inbox/store/inbox-store.js';
import {
  LIMITED_RECORDS,
  MAX_RECORDS,
  RECORD_RETENTION_MS,
} from '../../inbox/store/shared-records.js';
import { fromStored, toStored } from './sql-connection.js';
import type { SqlConnection } from './sql-connection.js';

interface RecordRow extends Pick<StoredRecord, 'key' | 'version' | 'body'> {
  /** When the record was last changed, by the store clock. */
  readonly changed_at: number;
  readonly age_ms: number;
}

export class SqlRecords implements RecordStore {
  readonly #table: string;

  constructor(private readonly connection: SqlConnection) {
    this.#table = connection.dialect.table('record');
  }

  async put({ kind, key, body, ifVersion }: Parameters<RecordStore['put']>[0]) {
    const row = await this.connection.get<{ readonly version: number }>(
      `INSERT INTO ${this.#table} AS r (kind, key, version, body, changed_at)
       SELECT $1::text, $2::text, 1, $3::text, ${this.connection.dialect.now('store')}
       WHERE COALESCE($4::bigint, 0) = 0
         OR EXISTS (SELECT 1 FROM ${this.#table} x WHERE x.kind = $1::text AND x.key = $2::text)
       ON CONFLICT (kind, key) DO UPDATE
         SET version = r.version + 1, body = excluded.body, changed_at = excluded.changed_at
         WHERE r.version = COALESCE($4::bigint, r.version)
       RETURNING version`,
      [kind, toStored(key), toStored(body), ifVersion ?? null],
    );
    return row?.version ?? null;
  }

  async list(kind: RecordKind, limit: number, containing = ''): Promise<StoredRecord[]> {
    const { dialect } = this.connection;
    const rows = await this.connection.all<RecordRow>(
      `SELECT key, version, body, changed_at, ${dialect.now('store')} - changed_at AS age_ms
       FROM ${this.#table} WHERE kind = $1::text AND ($3::text = '' OR replace(body, $3::text, '') <> body)
       ORDER BY changed_at DESC, key DESC LIMIT $2::bigint`,
      [kind, limit, toStored(containing)],
    );
    return rows.map(({ key, version, body, changed_at: at, age_ms: ageMs }) => ({
      key: fromStored(key),
      version,
      body: fromStored(body),
      changedAt: new Date(at + dialect.wallOffsetMs),
      ageMs: Math.max(0, ageMs),
    }));
  }

  async remove(kind: RecordKind, key: string): Promise<void> {
    await this.connection.run(
      `DELETE FROM ${this.#table} WHERE kind = $1::text AND key = $2::text`,
      [kind, toStored(key)],
    );
  }

  async prune(): Promise<void> {
    for (const [kind, retentionMs] of Object.entries(RECORD_RETENTION_MS)) {
      const now = this.connection.dialect.now('store');
      await this.connection.run(
        `DELETE FROM ${this.#table} WHERE kind = $1::text AND changed_at < ${now} - $2::bigint`,
        [kind, retentionMs],
      );
    }
    for (const kind of LIMITED_RECORDS) {
      await this.connection.run(
        `DELETE FROM ${this.#table} WHERE kind = $1::text AND (changed_at, key) <= (
           SELECT x.changed_at, x.key FROM ${this.#table} x WHERE x.kind = $1::text
           ORDER BY x.changed_at DESC, x.key DESC LIMIT 1 OFFSET ${MAX_RECORDS})`,
        [kind],
      );
    }
  }
}
