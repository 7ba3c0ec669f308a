import { describe, expect, it } from '@jest/globals';
import { eventRow } from './memory.rows.js';
import type { EventRow } from './memory.rows.js';
import { MemoryShelf } from './memory.shelf.js';

const LIMITS = { maxEvents: 4, maxBytes: 100, retentionMs: 50 };

function row(id: string, bytes = 10): EventRow {
  return eventRow(
    {
      company: 'c',
      id,
      dedupeKey: `key of ${id}`,
      eventType: 't',
      orderingKey: null,
      raw: Buffer.alloc(bytes),
      handlers: [],
    },
    new Date(0),
  );
}

/** A shelf with these events on it, finished in their order. */
function shelf(...rows: EventRow[]): MemoryShelf {
  const made = new MemoryShelf(LIMITS);
  rows.forEach((one, index) => {
    made.add(one);
    made.finish(one, index);
  });
  return made;
}

describe('MemoryShelf', () => {
  it('makes room with the bodies that finished first, and with no more than it must', () => {
    const [a, b, c] = [row('a', 40), row('b', 40), row('c', 10)];
    const made = shelf(a, b, c);
    made.makeRoom(1, 10);
    expect([a.raw, b.raw, c.raw]).not.toContain(null);
    made.makeRoom(1, 11);
    expect(a.raw).toBeNull();
    expect(b.raw).not.toBeNull();
    expect(made.find('c', 'a')).toBe(a);
    made.makeRoom(1, 100);
    expect([b.raw, c.raw]).toEqual([null, null]);
  });

  it('makes room with the events that finished first, under both of their keys', () => {
    const made = shelf(row('a'), row('b'), row('c'), row('d'));
    made.makeRoom(2, 0);
    expect(['a', 'b', 'c', 'd'].map((id) => made.find('c', id) !== undefined)).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(made.known('c', 'key of a', 'x')).toBeUndefined();
    expect(made.known('c', 'key of c', 'x')?.id).toBe('c');
    expect(made.known('c', 'x', 'c')?.id).toBe('c');
    expect(made.known('d', 'key of c', 'c')).toBeUndefined();
  });

  it('refuses, having let go of nothing, where what is unfinished leaves too little', () => {
    const a = row('a', 50);
    const made = shelf(a);
    made.add(row('b', 40));
    made.makeRoom(1, 60);
    a.raw = null;
    for (const [events, bytes] of [
      [4, 0],
      [1, 61],
    ] as const) {
      expect(() => made.makeRoom(events, bytes)).toThrow(
        expect.objectContaining({ code: 'inbox_full' }),
      );
    }
    expect(made.find('c', 'a')).toBe(a);
  });

  it('never lets go of what runs again', () => {
    const [a, b] = [row('a', 40), row('b', 40)];
    const made = shelf(a, b);
    made.reopen(a);
    made.makeRoom(1, 60);
    expect(a.raw).not.toBeNull();
    expect(b.raw).toBeNull();
    expect(() => made.makeRoom(1, 61)).toThrow(/full/);
    made.forgetExpired(1000);
    expect(made.find('c', 'a')).toBe(a);
    expect(made.find('c', 'b')).toBeUndefined();
    made.finish(a, 1000);
    made.makeRoom(1, 100);
    expect(a.raw).toBeNull();
  });

  it('counts a body that came back', () => {
    const a = row('a', 60);
    const made = shelf(a);
    made.makeRoom(1, 100);
    made.restore(a, Buffer.alloc(60));
    expect(a.raw).toHaveLength(60);
    made.restore(a, Buffer.alloc(90));
    expect(a.raw).toHaveLength(60);
    made.makeRoom(1, 41);
    expect(a.raw).toBeNull();
  });

  it('forgets what finished as long ago as the retention, and nothing after it', () => {
    const made = shelf(row('a'), row('b'));
    made.forgetExpired(49);
    expect(made.find('c', 'a')).toBeDefined();
    made.forgetExpired(50);
    expect(made.find('c', 'a')).toBeUndefined();
    expect(made.find('c', 'b')).toBeDefined();
  });
});
