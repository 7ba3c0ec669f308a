import { existsSync, readFileSync } from 'node:fs';
import { describe } from '@jest/globals';
import { memoryInbox } from 'nestjs-payments';
import type { IncomingEvent, InboxDefinition } from 'nestjs-payments';
import { onEachDurableInbox } from './durable-inboxes.js';
import type { InboxData, InboxStage } from './durable-inboxes.js';

/** Where the inboxes of one test keep their events, and what is there. */
export interface InboxContent extends Pick<InboxData, 'inbox'> {
  /** All bytes that are stored: files, tables or, in memory, what the store was given. */
  read(): Promise<Buffer>;
  /** Set to change events on their way into the store, as someone does who can write to the database. */
  tamper: (event: IncomingEvent) => IncomingEvent;
}

/** Declares the same promises for each inbox, the memory inbox included. */
export function onEachInbox(promises: (content: () => Promise<InboxContent>) => void): void {
  describe('on memory', () =>
    promises(async () => {
      const given: IncomingEvent[] = [];
      const read = async () =>
        Buffer.concat(
          given.flatMap(({ raw, ...event }) => [raw, Buffer.from(JSON.stringify(event))]),
        );
      return tapped(() => memoryInbox(), read, given);
    }));
  onEachDurableInbox((stage) =>
    promises(async () => {
      const data = await stage.data();
      const read = () => (stage.kind === 'sqlite' ? readFiles(data) : readTables(stage, data));
      return tapped(() => data.inbox(), read);
    }),
  );
}

function tapped(
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
  stage: InboxStage,
  { child: { where, schema } }: InboxData,
): Promise<Buffer> {
  const query = <R>(text: string) => stage.server().query<R>(where, text);
  const tables = ['event', 'delivery', 'activity'];
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
