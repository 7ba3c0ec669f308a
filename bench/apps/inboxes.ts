import { memoryInbox, sqliteInbox } from 'nestjs-payments';
import type { InboxDefinition } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';

/** Which inbox an application of the bench has. All at their defaults. */
export type InboxChoice =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string };

export function inboxOf(choice: InboxChoice): InboxDefinition {
  if (choice.kind === 'sqlite') return sqliteInbox({ file: choice.file, allowOldSqlite: true });
  if (choice.kind === 'postgres') return postgresInbox({ connectionString: choice.url });
  return memoryInbox();
}
