import { describe, expect, it } from '@jest/globals';
import { attempt, GOOD, heartbeats, rules } from './checker-fixtures.js';
import type { JournalEntry } from './application-protocol.js';

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
