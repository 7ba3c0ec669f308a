import { describe, expect, it } from '@jest/globals';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { HandlerCatalogCache } from './handler-catalog-cache.js';
import type { HandlerCatalog, InboxStore } from './inbox-store.js';

const AT = new Date(0);

function catalog(version: number, ...handlers: [name: string, ...patterns: string[]][]) {
  return {
    version,
    handlers: handlers.map(([name, ...patterns]) => ({
      name,
      patterns,
      firstSeenAt: AT,
      lastSeenAt: AT,
    })),
  };
}

/** A cache in a process with the handlers `own` (of `a` and `b.*`) and `both` (of `a`). */
function cacheOf(load: () => Promise<HandlerCatalog> = async () => catalog(0)) {
  const registry = new HandlerRegistry();
  const add = (name: string, ...patterns: string[]) =>
    registry.add({ name, source: name, patterns, options: {}, invoke: async () => {} });
  add('own', 'a', 'b.*');
  add('both', 'a');
  return new HandlerCatalogCache({ catalog: load } as InboxStore, registry);
}

describe('HandlerCatalogCache', () => {
  it('IN-32 matching() returns the handlers of this process and of all other processes, each once', async () => {
    const cache = cacheOf(async () =>
      catalog(3, ['both', 'a', 'c'], ['theirs', 'b.*'], ['all', '*']),
    );
    expect(cache.current.version).toBe(0);
    expect(cache.matching('a')).toEqual(['own', 'both']);
    await cache.refresh();
    expect(cache.current.version).toBe(3);
    expect(cache.matching('a')).toEqual(['own', 'both', 'all']);
    expect(cache.matching('b.c')).toEqual(['own', 'theirs', 'all']);
    // Only another version of the handler `both` takes the type c.
    expect(cache.matching('c')).toEqual(['both', 'all']);
    expect(cache.names()).toEqual(['own', 'both', 'theirs', 'all']);
  });

  it('matching() caches at most 1,000 event types, until the catalog changes', () => {
    const cache = cacheOf();
    const first = cache.matching('a');
    for (let n = 1; n < 1000; n += 1) cache.matching(`b.${n}`);
    expect(cache.matching('a')).toBe(first);
    cache.matching('b.1000');
    expect(cache.matching('a')).not.toBe(first);
    expect(cache.matching('a')).toEqual(first);
    cache.set(catalog(1, ['theirs', 'a']));
    expect(cache.matching('a')).toEqual(['own', 'both', 'theirs']);
  });

  it('set() replaces the catalog with the result of a registration', () => {
    const cache = cacheOf();
    cache.set(catalog(7, ['theirs', 'a']));
    expect(cache.matching('a')).toEqual(['own', 'both', 'theirs']);
    expect(cache.current.version).toBe(7);
  });

  it('concurrent calls of refresh() share one query, and a later call sends another query', async () => {
    let loads = 0;
    const cache = cacheOf(async () => catalog((loads += 1)));
    await Promise.all([cache.refresh(), cache.refresh(), cache.refresh()]);
    expect(loads).toBe(1);
    await cache.refresh();
    expect(cache.current.version).toBe(2);
  });

  it('refresh() keeps the cached catalog while the store is down, and loads the catalog after that', async () => {
    let down = true;
    const cache = cacheOf(async () => {
      if (down) throw new Error('down');
      return catalog(2);
    });
    cache.set(catalog(1, ['theirs', 'a']));
    await expect(cache.refresh()).rejects.toThrow('down');
    expect(cache.current.version).toBe(1);
    down = false;
    await cache.refresh();
    expect(cache.current.version).toBe(2);
  });

  it('WH-29 similar() finds a similar event type of any handler', () => {
    const cache = cacheOf();
    cache.set(catalog(1, ['theirs', 'payout.settled']));
    expect(cache.similar('payout.setled')).toBe('payout.settled');
    expect(cache.similar('refund')).toBeUndefined();
  });
});
