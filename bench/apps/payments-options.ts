import { memoryInbox } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { InboxDefinition } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { SECRET } from '../load/webhook-requests.ts';

/**
 * The options of every application with nestjs-payments. No service listens at `baseUrl`, because the application calls
 * no service.
 */
export const COMPANY = {
  baseUrl: 'http://127.0.0.1:9',
  clientId: 'bench',
  clientSecret: 'bench',
  webhookSecret: SECRET,
};

/** The inbox of an application, with default options. */
export type InboxChoice =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string };

export function inboxOf(choice: InboxChoice): InboxDefinition {
  if (choice.kind === 'sqlite') return sqliteInbox({ file: choice.file, allowOldSqlite: true });
  if (choice.kind === 'postgres') return postgresInbox({ connectionString: choice.url });
  return memoryInbox();
}
