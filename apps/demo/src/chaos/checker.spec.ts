import { describe, expect, it } from '@jest/globals';
import {
  planned,
  effect,
  done,
  stored,
  beats,
  GOOD,
  rules,
} from '../../../../test/support/chaos/observations.js';
import { check } from './checker.js';
import type { Observations } from './checker.js';

describe('check()', () => {
  it('finds nothing in a run in which no promise was broken', () => {
    expect(check(GOOD)).toEqual([]);
  });

  it.each<[string, Partial<Observations>, string[]]>([
    [
      'an event that nobody acknowledged',
      { sent: new Map([...GOOD.sent, ['a', { firstSentAt: 1, acknowledgedAt: null }]]) },
      ['unanswered'],
    ],
    ['an acknowledged event that is not stored', { stored: GOOD.stored.slice(1) }, ['lost']],
    ['a missing effect', { effects: GOOD.effects.slice(1) }, ['lost']],
    ['a second effect', { effects: [...GOOD.effects, effect('book', 'a', 'x')] }, ['doubled']],
    [
      'an effect of another id of the transaction',
      { effects: [...GOOD.effects, effect('book', 'b2', 'y')] },
      ['doubled'],
    ],
    [
      'an effect of a handler that is not to have the event',
      { effects: [...GOOD.effects, effect('other', 'a', 'x')] },
      ['invented'],
    ],
    ['two ids of one transaction stored', { stored: [...GOOD.stored, stored('b2')] }, ['doubled']],
    ['a repeat that is noted nowhere', { stored: [stored('a'), stored('b')] }, ['silent']],
    [
      'a delivery that still runs',
      {
        stored: [
          stored('a', { deliveries: [done('audit', { state: 'running' })] }),
          GOOD.stored[1]!,
        ],
      },
      ['stuck'],
    ],
    [
      'a dead delivery of an innocent event',
      {
        stored: [stored('a', { deliveries: [done('audit', { state: 'dead' })] }), GOOD.stored[1]!],
      },
      ['dead'],
    ],
    [
      'a poison event that is not dead',
      {
        events: [planned('a', 'x', { poisoned: ['audit'] }), ...GOOD.events.slice(1)],
      },
      ['not-dead'],
    ],
    [
      'an attempt that an innocent was charged for a crash',
      { stored: [stored('a', { deliveries: [done('audit', { attempts: 2 })] }), GOOD.stored[1]!] },
      ['charged'],
    ],
    [
      'a process that ended by itself',
      { ends: [{ how: 'exit code 1', why: null, log: '' }] },
      ['fell'],
    ],
    ['a process that did not end after SIGTERM', { lateDrains: ['p: still busy'] }, ['drain']],
  ])('reports %s', (_, changes, expected) => {
    expect(rules(changes)).toEqual(expected);
  });

  it('allows a charged attempt that was lost while it ran alone, and failed ones', () => {
    const history = [
      { outcome: 'failed', error: 'Error' },
      { outcome: 'lost', error: null },
      { outcome: 'done', error: null },
    ];
    const deliveries = [done('audit', { attempts: 3, history }), done('book')];
    const alone = { kind: 'alone', at: 1, event: 'a', handler: 'audit' } as const;
    const changes = { stored: [stored('a', { deliveries }), GOOD.stored[1]!] };
    const processes = [{ ...GOOD.processes[0]!, journal: [...beats(0, 5000), alone] }];
    expect(rules({ ...changes, processes })).toEqual([]);
    expect(rules(changes)).toEqual(['charged']);
  });

  it('wants an effect of the new handler for what was sent after it was known, and none for what was before', () => {
    const points = effect('points', 'a', 'x');
    const effects = [...GOOD.effects, points, effect('points', 'b', 'y')];
    const after = { from: 800, to: 900 };
    expect(rules({ newHandlerKnown: after, effects })).toEqual([]);
    expect(rules({ newHandlerKnown: after })).toEqual(['lost', 'lost']);
    const before = { from: 1100, to: 1200 };
    expect(rules({ newHandlerKnown: before })).toEqual([]);
    expect(rules({ newHandlerKnown: before, effects })).toEqual(['invented', 'invented']);
    // It became known while they were on their way.
    const meanwhile = { from: 995, to: 1005 };
    expect(rules({ newHandlerKnown: meanwhile, effects: [...GOOD.effects, points] })).toEqual([]);
  });
});
