import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { RecordKind, RecordStore } from '../../inbox/store/inbox-store.js';
import {
  LIMITED_RECORDS,
  MAX_RECORDS,
  RECORD_RETENTION_MS,
} from '../../inbox/store/shared-records.js';

interface Row {
  readonly key: string;
  readonly version: number;
  readonly body: string;
  /** When the record was last changed, by the monotonic clock. */
  readonly changedMs: number;
}

export interface MemoryRecords extends RecordStore {
  prune(): void;
}

export function memoryRecords(runtime: PaymentsRuntime): MemoryRecords {
  /** The records of each kind, the last changed record at the end. */
  const kinds = new Map<RecordKind, Map<string, Row>>();

  function rowsOf(kind: RecordKind): Map<string, Row> {
    const rows = kinds.get(kind) ?? new Map<string, Row>();
    kinds.set(kind, rows);
    return rows;
  }

  return {
    async put({ kind, key, body, ifVersion }) {
      const rows = rowsOf(kind);
      const stored = rows.get(key)?.version ?? 0;
      if (ifVersion !== undefined && ifVersion !== stored) return null;
      rows.delete(key);
      rows.set(key, { key, version: stored + 1, body, changedMs: runtime.monotonic() });
      return stored + 1;
    },

    async list(kind, limit, containing = '') {
      return [...rowsOf(kind).values()]
        .filter(({ body }) => body.includes(containing))
        .slice(-limit)
        .toReversed()
        .map(({ changedMs, ...row }) => {
          const ageMs = runtime.monotonic() - changedMs;
          return { ...row, changedAt: new Date(runtime.now() - ageMs), ageMs };
        });
    },

    async remove(kind, key) {
      rowsOf(kind).delete(key);
    },

    prune() {
      for (const [kind, rows] of kinds) {
        const before = runtime.monotonic() - RECORD_RETENTION_MS[kind];
        const extra = LIMITED_RECORDS.includes(kind) ? rows.size - MAX_RECORDS : 0;
        for (const [index, { key, changedMs }] of [...rows.values()].entries()) {
          if (changedMs < before || index < extra) rows.delete(key);
        }
      }
    },
  };
}
