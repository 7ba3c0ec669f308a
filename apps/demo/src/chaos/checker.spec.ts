import { describe, expect, it } from '@jest/globals';
import type { JournalEntry } from './application-protocol.js';
import { check } from './checker.js';
import type { Observations } from './checker.js';

const planned = (id: string, transactionId: string, more: object = {}) => ({
  id,
  eventType: 'transaction.completed',
  transactionId,
  actions: null,
  handlers: ['audit', 'book'],
  poisoned: [],
  copies: [],
  afterFaults: false,
  ...more,
});
const effect = (handler: string, event: string, transaction: string) => ({
  handler,
  event,
  transaction,
  run: `p/${handler}/${event}`,
});
const done = (handler: string, more: object = {}) => ({
  handler,
  state: 'done',
  attempts: 1,
  history: [{ outcome: 'done', error: null }],
  ...more,
});
const stored = (id: string, more: object = {}) => ({
  id,
  repeats: [],
  deliveries: [done('audit'), done('book')],
  ...more,
});
const run = (name: string, event: string, from: number, to: number): JournalEntry[] => [
  { kind: 'start', at: from, run: name, handler: 'book', event, transaction: 'x', attempt: 1 },
  { kind: 'worked', at: to, run: name },
  { kind: 'end', at: to + 5, run: name, error: null },
];
const beats = (from: number, to: number): JournalEntry[] =>
  Array.from({ length: (to - from) / 250 + 1 }, (_, index) => {
    const at = from + index * 250;
    return { kind: 'beat', at, end: at + 5, worker: 'w', alive: true } as const;
  });

/** A run in which no promise was broken: an event, and another under two ids. */
const GOOD: Observations = {
  events: [planned('a', 'x'), planned('b', 'y'), planned('b2', 'y')],
  sent: new Map(
    ['a', 'b', 'b2'].map((id) => [id, { firstSentAt: 1000, acknowledgedAt: 1010 }] as const),
  ),
  effects: [
    effect('audit', 'a', 'x'),
    effect('book', 'a', 'x'),
    effect('audit', 'b', 'y'),
    effect('book', 'b', 'y'),
  ],
  stored: [stored('a'), stored('b', { repeats: ['b2'] })],
  processes: [{ name: 'p', journal: beats(0, 5000), endedAt: null }],
  ends: [{ how: 'SIGKILL', why: 'killed', log: '' }],
  faults: [],
  lateDrains: [],
  newHandlerKnown: null,
  leaseMs: 1000,
  until: 5000,
};

const rules = (changes: Partial<Observations>) =>
  check({ ...GOOD, ...changes }).map(({ rule }) => rule);

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

  it('reports runs of one key at once, unless the first one has lost its lease', () => {
    const first = run('p/1', 'a', 1000, 3000);
    const second = {
      name: 'q',
      journal: [...beats(0, 5000), ...run('q/1', 'b', 2500, 2600)],
      endedAt: null,
    };
    const withBeats = (own: JournalEntry[]) => [
      { name: 'p', journal: [...own, ...first], endedAt: null },
      second,
    ];
    expect(rules({ processes: withBeats(beats(0, 5000)) })).toEqual(['overlap']);
    const stopped = [...beats(0, 1250), ...beats(3000, 5000)];
    const faults = [{ kind: 'stop', process: 'p', from: 1300, to: 2900 } as const];
    expect(rules({ processes: withBeats(stopped), faults })).toEqual([]);
    // Nothing kept it from its heartbeats.
    expect(rules({ processes: withBeats(stopped) })).toEqual(['heartbeat']);
    // The second one's process stood still between its claim and its run.
    const claimed = [...beats(0, 1250), ...beats(2600, 5000), ...run('q/1', 'b', 2500, 2600)];
    const blocked = { name: 'q', journal: claimed, endedAt: null };
    const whole = { name: 'p', journal: [...beats(0, 5000), ...first], endedAt: null };
    const block = [{ kind: 'block', process: 'q', from: 1300, to: 2490 } as const];
    expect(rules({ processes: [whole, blocked], faults: block })).toEqual([]);
    const retired = [...beats(0, 1250), { kind: 'retired', at: 1300, worker: 'w' } as const];
    expect(rules({ processes: withBeats(retired) })).toEqual(['overlap']);
    // It waited for the answer of the store until it ended.
    const unanswered = [...beats(0, 1250), { kind: 'sent', at: 1500 } as const];
    const ended = { name: 'p', journal: unanswered, endedAt: 4000 };
    expect(rules({ processes: [ended] })).toEqual([]);
    // An answered retirement excuses no gap before it.
    const signedOff = { kind: 'retired', at: 3000, worker: 'w' } as const;
    const silent = [...beats(0, 1250), { kind: 'sent', at: 3000 } as const, signedOff];
    expect(rules({ processes: [{ name: 'p', journal: silent, endedAt: 4000 }] })).toEqual([
      'heartbeat',
    ]);
    // The lease had not ended yet when the second one began.
    const late = [...beats(0, 2000), ...beats(3500, 5000)];
    expect(rules({ processes: withBeats(late), faults })).toEqual(['overlap']);
  });

  it('reports the effect of a run that committed after another process had begun to run the delivery', () => {
    const processes = (secondAt: number) => [
      { name: 'p', journal: run('p/1', 'a', 1000, 3000), endedAt: null },
      { name: 'q', journal: run('q/1', 'a', secondAt, 3500), endedAt: null },
    ];
    const effects = (of: string) => [
      { ...GOOD.effects[1]!, run: of },
      ...GOOD.effects.toSpliced(1, 1),
    ];
    // The process of the first one stood still without its lease.
    const faults = [{ kind: 'stop', process: 'p', from: 900, to: 2900 } as const];
    const found = (secondAt: number, of: string) =>
      rules({ processes: processes(secondAt), effects: effects(of), faults, leaseMs: 60_000 });
    expect(found(2000, 'p/1')).toContain('stale');
    expect(found(2000, 'q/1')).not.toContain('stale');
    expect(found(3001, 'p/1')).not.toContain('stale');
  });

  it('ends a run when its process ends, its time limit aborts it, or its transaction may commit', () => {
    const [start, worked, end] = run('p/1', 'a', 1000, 2000) as [
      JournalEntry,
      JournalEntry,
      JournalEntry,
    ];
    const second = {
      name: 'q',
      journal: [...beats(0, 5000), ...run('q/1', 'b', 2003, 2100)],
      endedAt: null,
    };
    const seen = (journal: JournalEntry[], endedAt: number | null = null) =>
      rules({
        processes: [
          { name: 'p', journal: [...beats(0, endedAt ?? 5000), ...journal], endedAt },
          second,
        ],
      });
    expect(seen([start, worked, end])).toEqual([]);
    expect(seen([start, end])).toEqual(['overlap']);
    const abort = {
      kind: 'abort',
      at: 1900,
      run: 'p/1',
      reason: 'TimeoutError: handler_timeout',
    } as const;
    expect(seen([start, abort, end])).toEqual([]);
    expect(seen([start, { ...abort, reason: 'The lease was lost.' }, end])).toEqual(['overlap']);
    expect(seen([start], 2000)).toEqual([]);
    expect(seen([start])).toEqual(['overlap']);
  });
});
