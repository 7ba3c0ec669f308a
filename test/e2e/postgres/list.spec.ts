import { describe, expect, it } from '@jest/globals';
import type {
  EventFilter,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { claim, incoming, usePostgresInboxes } from '../../support/postgres/postgres-inboxes.js';

describe('lists of events in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  const sleepThreeMs = (): Promise<unknown> => inboxes.query('SELECT pg_sleep(0.003)');
  const listed = async (store: InboxStore, filter: EventFilter): Promise<string[]> => {
    const query = { filter, order: 'oldest', limit: 100, after: null } as const;
    return (await store.list(query)).events.map(({ id }) => id);
  };

  it('list() returns pages in the order of receipt, oldest or newest first', async () => {
    const store = await inboxes.open();
    const ids = Array.from({ length: 7 }, (_, n) => `e${n}`);
    await store.receive(ids.slice(0, 4).map((id) => incoming(id)));
    for (const id of ids.slice(4)) await store.receive([incoming(id)]);
    const seen = async (order: 'newest' | 'oldest'): Promise<string[]> => {
      const found: string[] = [];
      for (let after: string | null = null; ;) {
        const page = await store.list({ filter: {}, order, limit: 3, after });
        found.push(...page.events.map(({ id }) => id));
        expect(page.events.every(({ raw }) => raw === null)).toBe(true);
        if (page.next === null) return found;
        after = page.next;
      }
    };
    expect(await seen('oldest')).toEqual(ids);
    expect(await seen('newest')).toEqual(ids.toReversed());
  });

  it('list() returns the events that match all fields of the filter', async () => {
    const store = await inboxes.open();
    await store.receive([
      incoming('a', { company: 'one', handlers: ['book', 'mail'], orderingKey: '100% \0 "tx"' }),
      incoming('b', { eventType: 'refund' }),
    ]);
    await sleepThreeMs();
    await store.receive([incoming('c', { handlers: [] })]);
    await store.complete((await claim(store, 1))[0]!);
    const { receivedAt } = (await store.find('default', 'c'))!;
    expect(await listed(store, { company: 'one' })).toEqual(['a']);
    expect(await listed(store, { ids: ['a', 'c', 'zz'] })).toEqual(['a', 'c']);
    expect(await listed(store, { eventType: 'refund' })).toEqual(['b']);
    expect(await listed(store, { from: receivedAt })).toEqual(['c']);
    expect(await listed(store, { to: receivedAt })).toEqual(['a', 'b']);
    expect(await listed(store, { handler: 'mail' })).toEqual(['a']);
    expect(await listed(store, { state: 'done' })).toEqual(['a']);
    expect(await listed(store, { state: 'done', handler: 'mail' })).toEqual([]);
    expect(await listed(store, { state: 'pending' })).toEqual(['a', 'b']);
    expect(await listed(store, { state: 'unhandled' })).toEqual(['c']);
    expect(await listed(store, { search: '100% \0 "tx"' })).toEqual(['a']);
    expect(await listed(store, { search: '100% \0 "t' })).toEqual([]);
    expect(await listed(store, { company: 'one', state: 'unhandled' })).toEqual([]);
  });
});
