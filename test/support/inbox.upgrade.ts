import { expect } from '@jest/globals';
import type { InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';

type Store = Pick<InboxStore, 'claim' | 'complete' | 'find' | 'redrive' | 'stats'>;

/** How the noted attempts of an event's one delivery ended. */
export async function outcomes(
  store: Pick<Store, 'find'>,
  company: string,
  id: string,
): Promise<[number, string][]> {
  const { history } = (await store.find(company, id))!.deliveries[0]!;
  return history.map(({ attempt, outcome }) => [attempt, outcome]);
}

/**
 * Holds a store to what an upgrade promises: it was left, by a version that noted no history, with the events `done`,
 * `failed` (due again), `dead`, `lost` (its lease ran out) and `new`, each with one delivery to `book`. All are done in
 * the end.
 */
export async function expectToGoOn(store: Store, company: string): Promise<void> {
  const claim = () => store.claim({ handlers: ['book'], limit: 10, leaseMs: 60_000 });
  for (const id of ['done', 'failed', 'dead', 'lost', 'new']) {
    const { headers, deliveries } = (await store.find(company, id))!;
    expect(headers).toEqual({});
    expect(deliveries).toMatchObject([{ handler: 'book', history: [] }]);
  }
  const claimed = await claim();
  expect(claimed.map(({ id, attempt, takenOver }) => [id, attempt, takenOver])).toEqual([
    ['failed', 2, false],
    ['lost', 2, true],
    ['new', 1, false],
  ]);
  for (const lease of claimed) expect(await store.complete(lease)).toBe(true);
  expect(await outcomes(store, company, 'failed')).toEqual([[2, 'done']]);
  expect(await outcomes(store, company, 'lost')).toEqual([
    [1, 'lost'],
    [2, 'done'],
  ]);
  // Nobody has noted when it started: at the latest when it ended.
  const [lost] = (await store.find(company, 'lost'))!.deliveries[0]!.history;
  expect(lost!.startedAt).toEqual(lost!.endedAt);
  expect(lost!.endedAt.getTime()).toBeGreaterThan(Date.now() - 600_000);
  const selection = [{ company, id: 'dead', handlers: ['book'] }];
  expect(await store.redrive(selection, { force: false, dueInMs: [0] })).toBe(1);
  expect(await store.complete((await claim())[0]!)).toBe(true);
  expect((await store.stats()).deliveries).toEqual([{ handler: 'book', state: 'done', count: 5 }]);
}
