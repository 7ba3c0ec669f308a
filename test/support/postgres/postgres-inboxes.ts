import { randomUUID } from 'node:crypto';
import { postgresInbox } from '../../../libs/payments/src/inbox/postgres/index.js';
import type {
  PostgresInboxOptions,
  PostgresTransaction,
} from '../../../libs/payments/src/inbox/postgres/index.js';
import type {
  ClaimedDelivery,
  IncomingEvent,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { startPostgres } from './postgres-server.js';
import type { PostgresServer } from './postgres-server.js';

/** A server, and the inboxes that a test opens on it. */
export class PostgresInboxes {
  readonly #open = new Set<InboxStore>();

  private constructor(
    readonly server: PostgresServer,
    /** Of a database that is this test file's own. */
    readonly connectionString: string,
  ) {}

  static async start(): Promise<PostgresInboxes> {
    const server = await startPostgres();
    return new PostgresInboxes(server, await server.createDatabase());
  }

  /** Opens one more instance: on a schema of its own, where none is named. */
  async open<T = PostgresTransaction>(options: PostgresInboxOptions = {}): Promise<InboxStore<T>> {
    const { connectionString } = this;
    const where = options.pool === undefined ? { connectionString } : {};
    const definition = postgresInbox({ schema: freshSchema(), ...where, ...options });
    const store = definition.create(systemRuntime);
    await store.open();
    this.#open.add(store);
    return store as InboxStore<T>;
  }

  /** Closes the instances, not the server. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((store) => store.close()));
    this.#open.clear();
  }

  async query<R = Record<string, unknown>>(text: string): Promise<R[]> {
    return this.server.query<R>(this.connectionString, text);
  }
}

let schemas = 0;

/** A schema that no other test of the file uses. */
export function freshSchema(): string {
  schemas += 1;
  return `inbox_${schemas}`;
}

/** An event to one handler, `book`, with the given fields in place of the defaults. */
export function incoming(id: string, given: Partial<IncomingEvent> = {}): IncomingEvent {
  return {
    company: 'default',
    id,
    eventType: 'transaction.completed',
    occurredAt: new Date('2026-01-01T00:00:00Z'),
    orderingKey: null,
    raw: Buffer.from(`{"id":${JSON.stringify(id)}}`),
    headers: {},
    onceKey: null,
    handlers: ['book'],
    catalogVersion: 0,
    assign: null,
    stale: false,
    ...given,
  };
}

/** Registers a worker without handlers, so that the version of the catalog stays as it is. Returns its id. */
export async function startWorker(
  store: Pick<InboxStore, 'register'>,
  leaseMs = 30_000,
): Promise<string> {
  const id = randomUUID();
  await store.register({ id, leaseMs, handlers: [] });
  return id;
}

/** Claims for `book`, under a new worker unless one is named. */
export async function claim(
  store: Pick<InboxStore, 'register' | 'claim'>,
  limit = 10,
  worker?: string,
): Promise<ClaimedDelivery[]> {
  const wanted = [{ handler: 'book', limit }];
  return store.claim({ worker: worker ?? (await startWorker(store)), wanted });
}
