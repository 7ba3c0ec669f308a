import { describe, expect, it } from '@jest/globals';
import type { IncomingEvent } from '../inbox-store.js';
import { deliveryRow, eventRow } from './memory.rows.js';
import type { EventRow } from './memory.rows.js';
import { MemoryShelf } from './memory.shelf.js';

const LIMITS = { maxEvents: 4, maxBytes: 100, retentionMs: 50 };

function incoming(id: string, bytes = 10): IncomingEvent {
  return {
    company: 'c',
    id,
    dedupeKey: `key of ${id}`,
    eventType: 't',
    occurredAt: new Date(0),
    orderingKey: null,
    raw: Buffer.alloc(bytes),
    headers: {},
    stale: false,
    handlers: [],
  };
}

function row(id: string, bytes = 10): EventRow {
  return eventRow(incoming(id, bytes), 1, { wall: 0, monotonic: 0 });
}

/** A shelf with these events on it, finished in their order. */
function shelf(...rows: EventRow[]): MemoryShelf {
  const made = new MemoryShelf(LIMITS);
  rows.forEach((one, index) => {
    made.add(one);
    made.update(one, index);
  });
  return made;
}

function known(made: MemoryShelf, company: string, dedupeKey: string, id: string) {
  return made.known({ company, dedupeKey, id } as IncomingEvent);
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
    expect(known(made, 'c', 'key of a', 'x')).toBeUndefined();
    expect(known(made, 'c', 'key of c', 'x')?.id).toBe('c');
    expect(known(made, 'c', 'x', 'c')?.id).toBe('c');
    expect(known(made, 'd', 'key of c', 'c')).toBeUndefined();
  });

  it('refuses, having let go of nothing, where what is unfinished leaves too little', () => {
    const a = row('a', 50);
    const made = shelf(a);
    const b = row('b', 40);
    b.deliveries.push(deliveryRow(b, 'h', 1));
    made.add(b);
    made.update(b, 1);
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
    a.deliveries.push(deliveryRow(a, 'h', 1));
    made.update(a, 2);
    made.makeRoom(1, 60);
    expect(a.raw).not.toBeNull();
    expect(b.raw).toBeNull();
    expect(() => made.makeRoom(1, 61)).toThrow(/full/);
    made.forgetExpired(1000);
    expect(made.find('c', 'a')).toBe(a);
    expect(made.find('c', 'b')).toBeUndefined();
    a.deliveries[0]!.state = 'done';
    made.update(a, 1000);
    made.makeRoom(1, 100);
    expect(a.raw).toBeNull();
  });

  it('forgets a dead letter whole: its tombstone would answer copies as handled', () => {
    const a = row('a', 60);
    a.deliveries.push({ ...deliveryRow(a, 'h', 1), state: 'dead' });
    const made = shelf(a);
    made.makeRoom(1, 50);
    expect(made.find('c', 'a')).toBeUndefined();
  });

  it('forgets what finished as long ago as the retention, and nothing after it', () => {
    const made = shelf(row('a'), row('b'));
    made.forgetExpired(49);
    expect(made.find('c', 'a')).toBeDefined();
    made.forgetExpired(50);
    expect(made.find('c', 'a')).toBeUndefined();
    expect(made.find('c', 'b')).toBeDefined();
  });

  it('counts an event once however often it is told that it finished', () => {
    const a = row('a', 60);
    const made = shelf(a);
    made.update(a, 7);
    made.add(row('b', 30));
    // Of 90 bytes 60 are finished: no more than 70 can be had.
    expect(() => made.makeRoom(1, 71)).toThrow(/full/);
    made.forgetExpired(50);
    expect(made.find('c', 'a')).toBeUndefined();
  });

  it('knows an event by its dedupe key, whether that is its id or not', () => {
    const named = eventRow({ ...incoming('a'), dedupeKey: 'a' }, 1, { wall: 0, monotonic: 0 });
    const made = shelf(named, row('b'));
    expect(known(made, 'c', 'a', 'x')).toBe(named);
    expect(known(made, 'c', 'key of b', 'key of b')?.id).toBe('b');
    // The id of `b` is no dedupe key of anything.
    expect(known(made, 'c', 'b', 'x')).toBeUndefined();
  });

  it('relates the events of one ordering key, for as long as they are there', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((id) =>
      eventRow({ ...incoming(id), orderingKey: 'k' }, 1, { wall: 0, monotonic: 0 }),
    ) as [EventRow, EventRow, EventRow];
    const made = shelf(a, b);
    expect(a.related).toEqual([a, b]);
    made.forget(a);
    expect(b.related).toEqual([b]);
    made.forget(b);
    made.add(c);
    expect(c.related).toEqual([c]);
  });
});
