import type { SqliteConnection } from './sqlite.connection.js';

/** When the next delivery of these handlers falls due, or its lease ends; `null` if none waits. */
export function nextDue(
  connection: SqliteConnection,
  { handlers }: { readonly handlers: readonly string[] },
): number | null {
  let next: number | null = null;
  for (const handler of handlers) {
    const row = connection.get<{ due_at: number }>(
      `SELECT due_at FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_due
       WHERE handler = ? AND due_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM payments_inbox_handler WHERE handler IN (?, '*'))
       ORDER BY due_at LIMIT 1`,
      handler,
      handler,
    );
    if (row !== undefined) next = Math.min(next ?? row.due_at, row.due_at);
  }
  return next;
}
