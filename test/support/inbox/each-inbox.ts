import { existsSync, readFileSync } from 'node:fs';
import { describe } from '@jest/globals';
import { memoryInbox } from 'nestjs-payments';
import type { InboxDefinition } from 'nestjs-payments';
import type { IncomingEvent } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { onEachDurableInbox } from './durable-inboxes.js';
import type { InboxData, DurableInbox } from './durable-inboxes.js';

/** The inboxes of one test, and their stored bytes. */
export interface InboxContent extends Pick<InboxData, 'inbox'> {
  /** All stored bytes: of the files, of the tables or, in memory, of the received events. */
  read(): Promise<Buffer>;
  /** Set it to change events before they are stored, as an attacker with access to the database could. */
  tamper: (event: IncomingEvent) => IncomingEvent;
}

/** Declares the same tests for each kind of inbox, the memory inbox included. */
export function onEachInbox(promises: (content: () => Promise<InboxContent>) => void): void {
  describe('on memory', () =>
    promises(async () => {
      const given: IncomingEvent[] = [];
      const read = async () =>
        Buffer.concat(
          given.flatMap(({ raw, ...event }) => [raw, Buffer.from(JSON.stringify(event))]),
        );
      return withContent(() => memoryInbox(), read, given);
    }));
  onEachDurableInbox((durable) =>
    promises(async () => {
      const data = await durable.data();
      const read = () => (durable.kind === 'sqlite' ? readFiles(data) : readTables(durable, data));
      return withContent(() => data.inbox(), read);
    }),
  );
}

function withContent(
  inbox: () => InboxDefinition,
  read: InboxContent['read'],
  given: IncomingEvent[] = [],
): InboxContent {
  const content: InboxContent = {
    read,
    tamper: (event) => event,
    inbox: () => {
      const definition = inbox();
      return {
        name: definition.name,
        create: (runtime) => {
          const store = definition.create(runtime);
          const receive = store.receive.bind(store);
          store.receive = (events) => {
            const changed = events.map((event) => content.tamper(event));
            given.push(...changed);
            return receive(changed);
          };
          return store;
        },
      };
    },
  };
  return content;
}

async function readFiles({ child: { where } }: InboxData): Promise<Buffer> {
  const files = [where, `${where}-wal`, `${where}-shm`].filter((file) => existsSync(file));
  return Buffer.concat(files.map((file) => readFileSync(file)));
}

async function readTables(
  durable: DurableInbox,
  { child: { where, schema } }: InboxData,
): Promise<Buffer> {
  const query = <R>(text: string) => durable.server().query<R>(where, text);
  const tables = ['event', 'delivery'];
  const rows = await Promise.all(
    tables.map((table) =>
      query<{ row: string }>(`SELECT t::text AS row FROM ${schema}.${table} t`),
    ),
  );
  const bodies = await query<{ raw: Buffer }>(`SELECT raw FROM ${schema}.event`);
  return Buffer.concat([
    ...rows.flat().map(({ row }) => Buffer.from(row)),
    ...bodies.map(({ raw }) => raw),
  ]);
}
