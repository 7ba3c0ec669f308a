import type {
  ClaimedDelivery,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { claim, incoming } from './postgres-inboxes.js';
import type { PostgresInboxes } from './postgres-inboxes.js';

/** The result of a settle whose lease was lost. */
export const LOST = { settled: false, nextDue: false };
/** The result of a settle that had no next delivery to make claimable. */
export const SETTLED = { settled: true, nextDue: false };

/** Creates the table in which the tests store effects. */
export async function createLedger(inboxes: PostgresInboxes): Promise<void> {
  await inboxes.query(
    `CREATE TABLE ledger (id text PRIMARY KEY, amount integer NOT NULL,
       CONSTRAINT honest CHECK (amount >= 0), twin text UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
  );
}

/** The stored effects. */
export function ledgerEntries(inboxes: PostgresInboxes): Promise<unknown[]> {
  return inboxes.query('SELECT id, amount FROM ledger ORDER BY id');
}

/** A statement that stores an effect. */
export function insert(id: string, amount = 5): string {
  return `INSERT INTO ledger (id, amount) VALUES ('${id}', ${amount})`;
}

/** The state of the only delivery of the event `e1`. */
export async function stateOf(store: Pick<InboxStore, 'find'>): Promise<unknown> {
  return (await store.find('default', 'e1'))?.deliveries[0]?.state;
}

/** Receives the event `e1` and claims its delivery. */
export async function leased(
  store: Pick<InboxStore, 'receive' | 'claim' | 'register'>,
): Promise<ClaimedDelivery> {
  await store.receive([incoming('e1', { orderingKey: 'k' })]);
  return (await claim(store, 1))[0]!;
}
