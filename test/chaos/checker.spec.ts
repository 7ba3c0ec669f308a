import { describe, expect, it } from '@jest/globals';
import { planned, effect, done, stored, heartbeats, GOOD, rules } from './checker-fixtures.js';
import { check } from './checker.js';
import type { Observations } from './checker.js';

describe('check()', () => {
  it('check() finds no violation if no promise was broken', () => {
    expect(check(GOOD)).toEqual([]);
  });

  it.each<[string, Partial<Observations>, string[]]>([
    [
      'an event that no process acknowledged',
      { sent: new Map([...GOOD.sent, ['a', { firstSentAt: 1, acknowledgedAt: null }]]) },
      ['not-acknowledged'],
    ],
    ['an acknowledged event that is not stored', { stored: GOOD.stored.slice(1) }, ['lost']],
    ['a missing effect', { effects: GOOD.effects.slice(1) }, ['lost']],
    ['a second effect', { effects: [...GOOD.effects, effect('book', 'a', 'x')] }, ['doubled']],
    [
      'an effect of a second event id of one transaction',
      { effects: [...GOOD.effects, effect('book', 'b2', 'y')] },
      ['doubled'],
    ],
    [
      'an effect of a handler that must not receive the event',
      { effects: [...GOOD.effects, effect('other', 'a', 'x')] },
      ['unexpected-effect'],
    ],
    [
      'two stored events of one transaction',
      { stored: [...GOOD.stored, stored('b2')] },
      ['doubled'],
    ],
    [
      'a duplicate that is not recorded',
      { stored: [stored('a'), stored('b')] },
      ['unrecorded-duplicate'],
    ],
    [
      'a delivery that is still running',
      {
        stored: [
          stored('a', { deliveries: [done('audit', { state: 'running' })] }),
          GOOD.stored[1]!,
        ],
      },
      ['stuck'],
    ],
    [
      'a dead delivery of an event that kills no process',
      {
        stored: [stored('a', { deliveries: [done('audit', { state: 'dead' })] }), GOOD.stored[1]!],
      },
      ['unexpected-dead-letter'],
    ],
    [
      'an event that kills its process and has no dead delivery',
      {
        events: [planned('a', 'x', { poisoned: ['audit'] }), ...GOOD.events.slice(1)],
      },
      ['missing-dead-letter'],
    ],
    [
      'a counted attempt that ended because another delivery crashed the process',
      { stored: [stored('a', { deliveries: [done('audit', { attempts: 2 })] }), GOOD.stored[1]!] },
      ['attempt-counted'],
    ],
    [
      'a process that ended by itself',
      { exits: [{ status: 'exit code 1', cause: null, log: '' }] },
      ['process-exited'],
    ],
    ['a process that did not end after SIGTERM', { lateDrains: ['p: still busy'] }, ['slow-drain']],
    [
      'EN-12 a message that a service has not acknowledged',
      { left: { waiting: 1, deadLetters: 0 } },
      ['left-in-engine'],
    ],
    [
      'EN-12 a dead letter of a service in the engine',
      { left: { waiting: 0, deadLetters: 1 } },
      ['engine-dead-letter'],
    ],
  ])('check() reports %s', (_, changes, expected) => {
    expect(rules(changes)).toEqual(expected);
  });

  it('check() allows counted attempts that failed, or that were lost while their delivery was a suspect', () => {
    const history = [
      { outcome: 'failed', error: 'Error' },
      { outcome: 'lost', error: null },
      { outcome: 'done', error: null },
    ];
    const deliveries = [done('audit', { attempts: 3, history }), done('book')];
    const suspect = { kind: 'claimed-suspect', at: 1, event: 'a', handler: 'audit' } as const;
    const changes = { stored: [stored('a', { deliveries }), GOOD.stored[1]!] };
    const processes = [{ ...GOOD.processes[0]!, journal: [...heartbeats(0, 5000), suspect] }];
    expect(rules({ ...changes, processes })).toEqual([]);
    expect(rules(changes)).toEqual(['attempt-counted']);
  });

  it('check() requires effects of a new handler for events that arrive after its registration, and reports its effects for earlier events', () => {
    const points = effect('points', 'a', 'x');
    const effects = [...GOOD.effects, points, effect('points', 'b', 'y')];
    const after = { from: 800, to: 900 };
    expect(rules({ newHandlerKnown: after, effects })).toEqual([]);
    expect(rules({ newHandlerKnown: after })).toEqual(['lost', 'lost']);
    const before = { from: 1100, to: 1200 };
    expect(rules({ newHandlerKnown: before })).toEqual([]);
    expect(rules({ newHandlerKnown: before, effects })).toEqual([
      'unexpected-effect',
      'unexpected-effect',
    ]);
    // The store recorded the handler while the webhook requests were under way.
    const meanwhile = { from: 995, to: 1005 };
    expect(rules({ newHandlerKnown: meanwhile, effects: [...GOOD.effects, points] })).toEqual([]);
  });
});
