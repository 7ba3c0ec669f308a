import { describe, expect, it } from '@jest/globals';
import {
  attempt,
  planned,
  effect,
  done,
  stored,
  heartbeats,
  GOOD,
  rules,
} from './checker-fixtures.js';
import type { JournalEntry } from './application-protocol.js';
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

const first = attempt('p/1', 'a', 1000, 3000);
const second = {
  name: 'q',
  journal: [...heartbeats(0, 5000), ...attempt('q/1', 'b', 2500, 2600)],
  endedAt: null,
};
const withHeartbeats = (own: JournalEntry[]) => [
  { name: 'p', journal: [...own, ...first], endedAt: null },
  second,
];
const stopped = [...heartbeats(0, 1250), ...heartbeats(3000, 5000)];
const stop = [{ kind: 'stop', process: 'p', from: 1300, to: 2900 } as const];

describe('check(): overlapping attempts', () => {
  it('check() reports overlapping attempts of one ordering key', () => {
    expect(rules({ processes: withHeartbeats(heartbeats(0, 5000)) })).toEqual([
      'overlapping-attempts',
    ]);
  });

  it('check() allows two attempts to overlap after the first process lost its lease', () => {
    expect(rules({ processes: withHeartbeats(stopped), faults: stop })).toEqual([]);
  });

  it('check() allows two attempts to overlap if the second process was blocked between its claim and its attempt', () => {
    const journal = [
      ...heartbeats(0, 1250),
      ...heartbeats(2600, 5000),
      ...attempt('q/1', 'b', 2500, 2600),
    ];
    const blocked = { name: 'q', journal, endedAt: null };
    const whole = { name: 'p', journal: [...heartbeats(0, 5000), ...first], endedAt: null };
    const block = [{ kind: 'block', process: 'q', from: 1300, to: 2490 } as const];
    expect(rules({ processes: [whole, blocked], faults: block })).toEqual([]);
  });
});

describe('check(): heartbeats', () => {
  it('check() expects no heartbeats after the runner killed a process, even if the runner notices the end of the process later', () => {
    const processes = [{ name: 'p', journal: heartbeats(0, 1250), endedAt: 4000 }];
    const kill = [{ kind: 'kill', process: 'p', from: 1300, to: 4000 } as const];
    expect(rules({ processes, faults: kill })).toEqual([]);
    expect(rules({ processes })).toEqual(['missing-heartbeat']);
  });

  it('check() reports a process that sent no heartbeat for a whole lease, although no fault affected the process', () => {
    expect(rules({ processes: withHeartbeats(stopped) })).toEqual(['missing-heartbeat']);
  });

  it('check() allows missing heartbeats while the process waits for a response of the store', () => {
    const journal = [...heartbeats(0, 1250), { kind: 'heartbeat-started', at: 1500 } as const];
    expect(rules({ processes: [{ name: 'p', journal, endedAt: 4000 }] })).toEqual([]);
  });
});

describe('check(): stale commits', () => {
  it('check() reports an attempt that committed after another process had started the delivery', () => {
    const processes = (secondAt: number) => [
      { name: 'p', journal: attempt('p/1', 'a', 1000, 3000), endedAt: null },
      { name: 'q', journal: attempt('q/1', 'a', secondAt, 3500), endedAt: null },
    ];
    const effects = (of: string) => [
      { ...GOOD.effects[1]!, attempt: of },
      ...GOOD.effects.toSpliced(1, 1),
    ];
    // The process of the first attempt was stopped and lost its lease.
    const faults = [{ kind: 'stop', process: 'p', from: 900, to: 2900 } as const];
    const found = (secondAt: number, of: string) =>
      rules({ processes: processes(secondAt), effects: effects(of), faults, leaseMs: 60_000 });
    expect(found(2000, 'p/1')).toContain('stale-commit');
    expect(found(2000, 'q/1')).not.toContain('stale-commit');
    expect(found(3001, 'p/1')).not.toContain('stale-commit');
  });
});

describe('check(): end of an attempt', () => {
  const [start, effect, end] = attempt('p/1', 'a', 1000, 2000) as [
    JournalEntry,
    JournalEntry,
    JournalEntry,
  ];
  const next = {
    name: 'q',
    journal: [...heartbeats(0, 5000), ...attempt('q/1', 'b', 2003, 2100)],
    endedAt: null,
  };
  const found = (journal: JournalEntry[], endedAt: number | null = null) =>
    rules({
      processes: [
        { name: 'p', journal: [...heartbeats(0, endedAt ?? 5000), ...journal], endedAt },
        next,
      ],
    });

  it('check() treats an attempt as ended when its transaction can commit', () => {
    expect(found([start, effect, end])).toEqual([]);
    expect(found([start, end])).toEqual(['overlapping-attempts']);
  });

  it('check() treats all attempts of a process as ended when the process kills itself, even if the runner notices the end later', () => {
    const killed = { kind: 'process-killed', at: 2001, attempt: 'p/2' } as const;
    expect(found([start, killed], 4000)).toEqual([]);
    expect(found([start], 4000)).toEqual(['overlapping-attempts']);
  });

  it('check() treats an attempt as ended when its time limit aborts it, but not when the lease is lost', () => {
    const abort = {
      kind: 'attempt-aborted',
      at: 1900,
      attempt: 'p/1',
      reason: 'TimeoutError: handler_timeout',
    } as const;
    expect(found([start, abort, end])).toEqual([]);
    expect(found([start, { ...abort, reason: 'The lease was lost.' }, end])).toEqual([
      'overlapping-attempts',
    ]);
  });

  it('check() treats an attempt as ended when its process ends', () => {
    expect(found([start], 2000)).toEqual([]);
    expect(found([start])).toEqual(['overlapping-attempts']);
  });
});
