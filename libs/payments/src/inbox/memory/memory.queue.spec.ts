import { beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryQueue } from './memory.queue.js';
import { deliveryRow, eventRow } from './memory.rows.js';
import type { DeliveryRow } from './memory.rows.js';

let queue: MemoryQueue;
let order: number;

beforeEach(() => {
  queue = new MemoryQueue();
  order = 0;
});

/** A delivery of event `id` that is due at `dueAt`, in the queue. */
function added(id: string, orderingKey: string | null, dueAt = 0, handler = 'h'): DeliveryRow {
  const incoming = {
    company: 'c',
    id,
    dedupeKey: id,
    eventType: 't',
    occurredAt: new Date(0),
    orderingKey,
    raw: Buffer.alloc(1),
    headers: {},
    stale: false,
    handlers: [handler],
  };
  const event = eventRow(incoming, 1, { wall: 0, monotonic: 0 });
  const row = deliveryRow(event, handler, (order += 1));
  row.dueAt = dueAt;
  queue.add(row);
  return row;
}

const next = (now = 0, handlers = ['h']) => queue.next(handlers, now)?.event.id;

/** Leases what is next, until nothing is. */
function leaseAll(now = 0): string[] {
  const leased: string[] = [];
  for (let row = queue.next(['h'], now); row !== undefined; row = queue.next(['h'], now)) {
    queue.lease(row, now + 1000);
    leased.push(row.event.id);
  }
  return leased;
}

describe('MemoryQueue', () => {
  it('gives the longest due first, the older of two, of the handlers asked for', () => {
    added('late', null, 5);
    added('other', null, 0, 'i');
    added('first', null, 1);
    added('second', null, 1);
    expect(next(0)).toBeUndefined();
    expect(next(5, ['i', 'h'])).toBe('other');
    expect(leaseAll(5)).toEqual(['first', 'second', 'late']);
  });

  it('holds back what shares its key with one that runs, and lets one of them go on for each that ends', () => {
    const [a] = [added('a', 'k'), added('b', 'k'), added('c', 'k'), added('d', 'l')];
    expect(leaseAll()).toEqual(['a', 'd']);
    queue.remove(a);
    expect(leaseAll()).toEqual(['b']);
  });

  it('gives one that was held back and made due anew once, not twice', () => {
    const [a, b] = [added('a', 'k'), added('b', 'k')];
    expect(leaseAll()).toEqual(['a']);
    queue.remove(b);
    queue.add(b);
    queue.remove(a);
    expect(leaseAll()).toEqual(['b']);
    queue.remove(b);
    expect(leaseAll()).toEqual([]);
    expect(queue.nextDueAt(['h'])).toBeUndefined();
  });

  it('lets the next go on where the one that was let go ahead is taken out', () => {
    const [a, b] = [added('a', 'k'), added('b', 'k'), added('c', 'k')];
    expect(leaseAll()).toEqual(['a']);
    queue.remove(a);
    queue.remove(b);
    expect(leaseAll()).toEqual(['c']);
  });

  it('keeps a lease that was prolonged, and its key', () => {
    const [a] = [added('a', 'k'), added('b', 'k')];
    expect(leaseAll()).toEqual(['a']);
    queue.extend(a, 5000);
    expect(leaseAll(4999)).toEqual([]);
    expect(queue.nextDueAt(['h'])).toBe(5000);
    expect(leaseAll(5000)).toHaveLength(1);
  });

  it('forgets one that was taken out, wherever it stood', () => {
    const [running, held, pending] = [added('a', 'k'), added('b', 'k'), added('c', null, 9)];
    expect(leaseAll()).toEqual(['a']);
    for (const row of [held, pending, running]) queue.remove(row);
    expect(leaseAll(2000)).toEqual([]);
  });

  it('gives one whose lease ran out again, and then what waited for its key', () => {
    added('a', 'k');
    added('b', 'k');
    expect(leaseAll()).toEqual(['a']);
    expect(next(999)).toBeUndefined();
    const first = queue.next(['h'], 1000)!;
    queue.lease(first, 2000);
    expect(leaseAll(1000)).toEqual([]);
    queue.remove(first);
    expect(leaseAll(1000)).toHaveLength(1);
  });

  it('tells when one is due or a lease ends, and of one held back the end of what holds it', () => {
    expect(queue.nextDueAt(['h'])).toBeUndefined();
    added('a', 'k');
    added('b', 'k');
    added('c', null, 3000);
    expect(queue.nextDueAt(['h'])).toBe(0);
    expect(leaseAll()).toEqual(['a']);
    expect(queue.nextDueAt(['h'])).toBe(1000);
    expect(queue.nextDueAt(['i'])).toBeUndefined();
    queue.lease(added('other', null, 0, 'i'), 500);
    expect(queue.nextDueAt(['h'])).toBe(1000);
    expect(queue.nextDueAt(['i', 'h'])).toBe(500);
  });

  it('takes 10,000 of one key, and of as many keys, without looking at all of them each time', () => {
    const began = performance.now();
    for (let i = 0; i < 10_000; i += 1) {
      added(`one-${i}`, 'k');
      added(`of-${i}`, `k-${i}`, 1e9);
    }
    let left = 0;
    for (let row = queue.next(['h'], 0); row !== undefined; row = queue.next(['h'], 0)) {
      queue.lease(row, 1000);
      expect(queue.next(['h'], 0)).toBeUndefined();
      queue.remove(row);
      left += 1;
    }
    expect(left).toBe(10_000);
    // It takes a tenth of a second; a look at all of them each time takes a minute.
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});
