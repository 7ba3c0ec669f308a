import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { Client } from 'pg';
import { postgresInbox } from '../../../libs/payments/src/stores/postgres/index.js';
import type {
  PostgresInboxOptions,
  PostgresTransaction,
} from '../../../libs/payments/src/stores/postgres/index.js';
import type {
  ClaimedDelivery,
  IncomingEvent,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { incoming as contractIncoming } from '../../store-contract/contract-fixtures.ts';
import { startPostgres } from './postgres-server.js';
import type { PostgresServer } from './postgres-server.js';

export { idsOf } from '../../store-contract/contract-fixtures.ts';

/** SQL for the current time in milliseconds, as the inbox stores times. */
export const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** A database for one test file, and the inboxes and clients that its tests open. */
class PostgresInboxes {
  readonly #stores = new Set<InboxStore>();
  readonly #clients = new Set<Client>();
  #started: { readonly server: PostgresServer; readonly connectionString: string } | null = null;

  /** The server, after {@link start}. */
  get server(): PostgresServer {
    return this.#get().server;
  }

  /** How to connect to the database of the test file, after {@link start}. */
  get connectionString(): string {
    return this.#get().connectionString;
  }

  /** Starts the server and creates the database. */
  async start(): Promise<void> {
    const server = await startPostgres();
    this.#started = { server, connectionString: await server.createDatabase() };
  }

  /** Opens one more inbox, in a new schema unless the options name one. */
  async open<T = PostgresTransaction>(options: PostgresInboxOptions = {}): Promise<InboxStore<T>> {
    const { connectionString } = this;
    const target = options.pool === undefined ? { connectionString } : {};
    const definition = postgresInbox({ schema: freshSchema(), ...target, ...options });
    const store = definition.create(systemRuntime);
    await store.open();
    this.#stores.add(store);
    return store as InboxStore<T>;
  }

  /** Opens a connection of its own to the database. */
  async openClient(): Promise<Client> {
    const client = new Client({ connectionString: this.connectionString });
    await client.connect();
    this.#clients.add(client);
    return client;
  }

  /** Runs one statement as the superuser. */
  async query<R = Record<string, unknown>>(text: string): Promise<R[]> {
    return this.server.query<R>(this.connectionString, text);
  }

  /** Closes the inboxes and the clients, not the server. */
  async close(): Promise<void> {
    const clients = [...this.#clients];
    this.#clients.clear();
    await Promise.all(clients.map((client) => client.end()));
    const stores = [...this.#stores];
    this.#stores.clear();
    await Promise.all(stores.map((store) => store.close()));
  }

  #get(): { readonly server: PostgresServer; readonly connectionString: string } {
    if (this.#started === null) throw new Error('The PostgreSQL server has not started yet.');
    return this.#started;
  }
}

/**
 * Starts a server for the tests of a describe block, and ends the server after the last test. Closes inboxes and
 * clients after each test or, with `keepOpen`, after the last test.
 *
 * @param tearDown runs before the server ends
 */
export function usePostgresInboxes({
  keepOpen = false,
  tearDown = async () => {},
}: {
  keepOpen?: boolean;
  tearDown?: (inboxes: PostgresInboxes) => Promise<unknown>;
} = {}): PostgresInboxes {
  const inboxes = new PostgresInboxes();
  beforeAll(() => inboxes.start(), 60_000);
  if (!keepOpen) afterEach(() => inboxes.close());
  afterAll(async () => {
    await inboxes.close();
    await tearDown(inboxes);
    await inboxes.server.end();
  });
  return inboxes;
}

let schemas = 0;

/** The name of a schema that no other test of the file uses. */
export function freshSchema(): string {
  schemas += 1;
  return `inbox_${schemas}`;
}

/** An event for the handler `book`, with the given fields in place of the defaults. */
export const incoming = (id: string, given: Partial<IncomingEvent> = {}): IncomingEvent =>
  contractIncoming({ id, company: 'default', ...given });

/** Registers a worker without handlers, so that the version of the catalog stays as it is. Returns its id. */
export async function startWorker(
  store: Pick<InboxStore, 'register'>,
  leaseMs = 30_000,
): Promise<string> {
  const id = randomUUID();
  await store.register({ id, leaseMs, handlers: [] });
  return id;
}

/** Claims deliveries of `book`, under a new worker unless one is given. */
export async function claim(
  store: Pick<InboxStore, 'register' | 'claim'>,
  limit = 10,
  worker?: string,
): Promise<ClaimedDelivery[]> {
  const wanted = [{ handler: 'book', limit }];
  return store.claim({ workerId: worker ?? (await startWorker(store)), wanted });
}

/** How many pages a statement reads. It is rolled back. */
export function pagesRead(
  client: Client,
  text: string,
  values: readonly (string | string[])[] = [],
): Promise<number> {
  return pagesReadBy(client, [{ text, values }]);
}

/** How many pages all statements of an operation read together, as a pool recorded them. They are rolled back. */
export async function pagesReadBy(
  client: Client,
  statements: readonly { readonly text: string; readonly values: readonly unknown[] }[],
): Promise<number> {
  let pages = 0;
  await client.query('BEGIN');
  for (const { text, values } of statements) {
    if (/^(BEGIN|COMMIT)/.test(text)) continue;
    if (text.startsWith('SELECT set_config')) {
      await client.query(text);
      continue;
    }
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
      [...values],
    );
    const { Plan } = rows[0]!['QUERY PLAN'][0]!;
    pages += Plan['Shared Hit Blocks']! + Plan['Shared Read Blocks']!;
  }
  await client.query('ROLLBACK');
  return pages;
}
