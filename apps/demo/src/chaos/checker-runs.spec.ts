import { describe, expect, it } from '@jest/globals';
import { run, beats, GOOD, rules } from '../../../../test/support/chaos/observations.js';
import type { JournalEntry } from './application-protocol.js';

describe('check(): runs', () => {
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
