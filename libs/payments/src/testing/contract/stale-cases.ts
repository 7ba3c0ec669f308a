import { deepEqual, equal, ok } from 'node:assert/strict';
import type { EventState, IncomingEvent, InboxStore } from '../../inbox/store/inbox-store.js';
import { incoming, NOW, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const DAY = 86_400_000;

/** An event that was too old when it was received. */
function stale(id: string, event: Partial<IncomingEvent> = {}): IncomingEvent {
  return incoming({ id, handlers: [], stale: true, ...event });
}

/** The number and the ids of the events in a state. */
async function inState(store: InboxStore, state: 'unhandled' | 'stale'): Promise<string> {
  const { events } = await store.list({
    filter: { state } satisfies { state: EventState },
    order: 'oldest',
    limit: 100,
    after: null,
  });
  const ids = events.map(({ id }) => id).toSorted();
  return `${(await store.stats())[state].count}: ${ids.join()}`;
}

/** Deletes everything that can be deleted: bodies after 7 days, tombstones after 30. */
async function prune(store: InboxStore): Promise<void> {
  const request = { bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 10 };
  while ((await store.prune(request)) > 0);
}

export const staleCases: readonly InboxContractCase[] = [
  {
    title: 'SE-09 stores a stale event without deliveries and lists it as stale, not as unhandled',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([stale('old'), incoming({ id: 'nobody', handlers: [] }), incoming()]);
      equal((await store.find('acme', 'old'))?.stale, true);
      equal((await store.find('acme', 'nobody'))?.stale, false);
      deepEqual(await states(store, { id: 'old' }), {});
      equal(await inState(store, 'stale'), '1: old');
      equal(await inState(store, 'unhandled'), '1: nobody');
      deepEqual(
        (await store.stats()).deliveries.map(({ handler, count }) => [handler, count]),
        [['book', 1]],
      );
      equal((await worker.claim()).length, 1);
      equal((await store.receive([stale('old')]))[0]?.outcome, 'duplicate');
    },
  },
  {
    title: 'SE-09 redrives a stale event, which keeps the mark and leaves the state',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([stale('old'), stale('older')]);
      const selection = { company: 'acme', id: 'old', handlers: ['book'] };
      equal(await store.redrive([selection], NOW), 1);
      equal(await inState(store, 'stale'), '1: older');
      equal(await inState(store, 'unhandled'), '0: ');
      ok((await store.complete(await worker.claimOne())).settled);
      deepEqual(await states(store, { id: 'old' }), { book: 'done 1' });
      equal((await store.find('acme', 'old'))?.stale, true);
    },
  },
  {
    title: 'SE-09 prunes a stale event like a finished one and counts it no longer',
    async run({ store, advance }) {
      await store.receive([stale('old')]);
      await advance(8 * DAY);
      await prune(store);
      equal(await inState(store, 'stale'), '0: ');
      equal((await store.find('acme', 'old'))?.raw, null);
      equal((await store.receive([stale('old')]))[0]?.outcome, 'duplicate');
      await advance(23 * DAY);
      await prune(store);
      equal(await store.find('acme', 'old'), undefined);
      await store.receive([stale('old')]);
      await advance(31 * DAY);
      await prune(store);
      equal(await inState(store, 'stale'), '0: ');
      equal(await store.find('acme', 'old'), undefined);
    },
  },
  {
    title: 'SE-09 remembers an event from the future until its own time is past the retention',
    async run({ store, advance }) {
      const probe = incoming({ handlers: [] });
      await store.receive([probe]);
      const now = (await store.find('acme', probe.id))!.receivedAt.getTime();
      const ahead = incoming({ occurredAt: new Date(now + 20 * DAY), handlers: [] });
      await store.receive([ahead]);
      await advance(31 * DAY);
      await prune(store);
      equal(await store.find('acme', probe.id), undefined);
      equal((await store.find('acme', ahead.id))?.raw, null);
      equal((await store.receive([ahead]))[0]?.outcome, 'duplicate');
      await advance(20 * DAY);
      await prune(store);
      equal(await store.find('acme', ahead.id), undefined);
    },
  },
];
