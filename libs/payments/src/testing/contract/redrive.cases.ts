import { deepEqual, equal, ok } from 'node:assert/strict';
import type { InboxStore } from '../../inbox/inbox-store.js';
import { claim, claimOne, incoming, states } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

const NOW = { force: false, dueInMs: [0] };

/** An event whose delivery to `book` is dead, and to `mail` done. */
async function halfDead(store: InboxStore) {
  const event = incoming({ handlers: ['book', 'mail'] });
  await store.receive([event]);
  await store.fail(await claimOne(store, 'book'), { error: 'no', retryInMs: null });
  await store.complete(await claimOne(store, 'mail'));
  return event;
}

export const redriveCases: readonly InboxContractCase[] = [
  {
    title: '20: redrives a dead delivery from attempt 1, once, however often it is asked',
    async run({ store }) {
      const { id } = await halfDead(store);
      const selection = [{ company: 'acme', id, handlers: ['book', 'mail'] }];
      equal(await store.redrive(selection, NOW), 1);
      await store.redrive(selection, NOW);
      deepEqual(await states(store, { id }), { book: 'pending 0', mail: 'done 1' });
      const again = await claimOne(store);
      equal(again.attempt, 1);
      equal(await store.redrive(selection, NOW), 0);
      deepEqual(await states(store, { id }), { book: 'running 1', mail: 'done 1' });
      ok(await store.complete(again));
    },
  },
  {
    title: '20: runs a done delivery again only where that is forced',
    async run({ store }) {
      const { id } = await halfDead(store);
      const selection = [{ company: 'acme', id, handlers: ['mail'] }];
      equal(await store.redrive(selection, NOW), 0);
      equal((await claim(store, ['mail'])).length, 0);
      equal(await store.redrive(selection, { ...NOW, force: true }), 1);
      equal((await claimOne(store, 'mail')).attempt, 1);
    },
  },
  {
    title:
      '20: runs a handler that was added since on an old event, and leaves unknown events alone',
    async run({ store }) {
      const { id } = await halfDead(store);
      const selections = [
        { company: 'acme', id, handlers: ['audit'] },
        { company: 'acme', id: 'no such event', handlers: ['audit'] },
      ];
      equal(await store.redrive(selections, { force: false, dueInMs: [0, 0] }), 1);
      deepEqual(await states(store, { id }), {
        audit: 'pending 0',
        book: 'dead 1',
        mail: 'done 1',
      });
      equal((await claimOne(store, 'audit')).id, id);
      equal(await store.find('acme', 'no such event'), undefined);
    },
  },
  {
    title: '20: spreads redriven deliveries over time',
    async run({ store, advance }) {
      const events = [await halfDead(store), await halfDead(store)];
      const selections = events.map(({ id }) => ({ company: 'acme', id, handlers: ['book'] }));
      equal(await store.redrive(selections, { force: false, dueInMs: [0, 30_000] }), 2);
      equal((await claim(store)).length, 1);
      await advance(31_000);
      equal((await claim(store)).length, 1);
    },
  },
  {
    title: '20: makes a delivery that waits for its retry due at once, and keeps its attempts',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      await store.fail(await claimOne(store), { error: 'no', retryInMs: 600_000 });
      await store.redrive([{ company: 'acme', id: event.id, handlers: ['book'] }], NOW);
      equal((await claimOne(store)).attempt, 2);
    },
  },
  {
    title: 'leaves a pruned event alone, which has no body to run on',
    async run({ store, advance }) {
      const event = incoming();
      await store.receive([event]);
      await store.complete(await claimOne(store));
      await advance(2000);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 });
      const selection = [{ company: 'acme', id: event.id, handlers: ['book'] }];
      equal(await store.redrive(selection, { ...NOW, force: true }), 0);
      equal((await claim(store)).length, 0);
    },
  },
  {
    title: 'skips pending and dead deliveries, and nothing else',
    async run({ store }) {
      const { id } = await halfDead(store);
      const pending = incoming();
      await store.receive([pending]);
      const selections = [
        { company: 'acme', id, handlers: ['book', 'mail', 'none'] },
        { company: 'acme', id: pending.id, handlers: ['book'] },
      ];
      equal(await store.skip(selections), 2);
      equal(await store.skip(selections), 0);
      deepEqual(await states(store, { id }), { book: 'skipped 1', mail: 'done 1' });
      deepEqual(await states(store, pending), { book: 'skipped 0' });
      equal((await claim(store)).length, 0);
      equal(await store.redrive([selections[1]!], NOW), 1);
      equal((await claimOne(store)).id, pending.id);
    },
  },
];
