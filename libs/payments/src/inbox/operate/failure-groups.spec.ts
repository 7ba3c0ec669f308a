import { describe, expect, it } from '@jest/globals';
import type { InboxStore } from '../store/inbox-store.js';
import { boundedError } from '../store/stored-event.js';
import { errorGroup, errorParts, FailureGroups } from './failure-groups.js';

describe('groups of errors', () => {
  it.each([
    ['after 7 tries', 'after 10 tries'],
    ['took 301 ms', 'took 87 ms'],
    ['took 301ms, 1.5 s in all', 'took 9ms, 22.75 s in all'],
    ['order 83a1f00c', 'order 10293847'],
    ['no account ACC00012', 'no account ACC98765'],
    [
      'HTTP 503, request 3f2a9c1e-0b7d-4f6a-9e55-2d1c8b7a6f00',
      'HTTP 503, request 00000000-0000-0000-0000-000000000000',
    ],
    ['line 12 at 10.0.0.7:5432', 'line 9 at 10.0.12.25:80'],
    ['HTTP 503 after 3 s', 'HTTP 503 after 12 s'],
    [boundedError(`order 1 ${'x '.repeat(600)}`), boundedError(`order 12345 ${'x '.repeat(600)}`)],
  ])('the errors %j and %j are in one group', (a, b) => {
    expect(errorGroup(a)).toBe(errorGroup(b));
  });

  it.each([
    ['HTTP 503 from ledger', 'HTTP 404 from ledger'],
    ['(429)', '(500)'],
    ['no sha256', 'no sha512'],
    ['step2 failed', 'step3 failed'],
    ['ledger is closed', 'ledger is full'],
    ['deadbeef', 'defaced1'],
  ])('the errors %j and %j are in two groups', (a, b) => {
    expect(errorGroup(a)).not.toBe(errorGroup(b));
  });

  it('the parts of an error with an even index are the same for all errors of a group', () => {
    const error = '503 from 10.0.0.7, order 83a1f00c';
    const parts = errorParts(error);
    expect(parts.join('')).toBe(error);
    expect(parts.filter((_part, index) => index % 2 === 1)).toEqual([
      '10',
      '0',
      '0',
      '7',
      '83a1f00c',
    ]);
    expect(parts.filter((_part, index) => index % 2 === 0).join('#')).toBe(errorGroup(error));
  });

  it('OP-40 a group counts its companies, and its deliveries in each of the last 24 hours', async () => {
    const now = Date.parse('2026-11-20T10:30:00Z');
    const failure = (hours: number, company: string) => ({
      handler: 'h',
      error: `no order ${1000 + Math.round(10 * Math.abs(hours))}`,
      state: 'dead' as const,
      failedAt: new Date(now + hours * 3_600_000),
      company,
      eventId: `${hours}`,
    });
    const failed = [
      failure(0, 'b'),
      // The clock of the store may be ahead by minutes.
      failure(0.9, 'a'),
      failure(-1, 'a'),
      failure(-23, 'c'),
      failure(-24, 'd'),
    ];
    const store = {
      failures: async () => ({ failed, more: false }),
      records: { list: async () => [] },
    } as unknown as InboxStore;
    const { groups } = await new FailureGroups(store, { now: () => now }).list();
    const trend = [1, ...Array.from({ length: 21 }, () => 0), 1, 2];
    const oldestAt = failed[4]!.failedAt;
    const last = { company: 'a', eventId: '0.9', newestAt: failed[1]!.failedAt };
    expect(groups).toMatchObject([
      { count: 5, companies: 4, trend, oldestAt, ...last, acknowledged: null },
    ]);
  });

  it('the process does other work while failures() groups 10,000 long errors', async () => {
    const failed = Array.from({ length: 10_000 }, (_, n) => ({
      handler: 'h',
      state: 'dead' as const,
      error: `${'abc1 '.repeat(180)} ${n}`,
      failedAt: new Date(0),
      company: 'c',
      eventId: String(n),
    }));
    const store = {
      failures: async () => ({ failed, more: false }),
      records: { list: async () => [] },
    } as unknown as InboxStore;
    let turns = 0;
    const turn = (): void => {
      turns += 1;
      pending = setImmediate(turn);
    };
    let pending = setImmediate(turn);
    const { groups } = await new FailureGroups(store, { now: () => 0 }).list();
    clearImmediate(pending);
    expect(groups).toMatchObject([{ count: 10_000, eventId: '0' }]);
    expect(turns).toBeGreaterThanOrEqual(10);
  });
});
