import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { turns } from '../../../../../test/support/time/waiting.js';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { POLL_HANDLER } from '../store/expectation-store.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { InboxMaintenance } from './inbox-maintenance.js';
import type { InboxStore, KnownHandler } from '../store/inbox-store.js';
import { resolveWorkerOptions } from '../work/worker-options.js';

const HOUR = 3_600_000;

let warnings: string[] = [];
beforeEach(() => {
  warnings = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => {
    warnings.push(String(line));
  });
});
afterEach(() => void jest.restoreAllMocks());

/** The maintenance of a process with the handler `here`, on a store whose `operations` the test may replace. */
function maintenanceWith(operations: Partial<InboxStore> = {}) {
  const runtime = new FakeRuntime();
  const calls: unknown[] = [];
  const known: KnownHandler[] = [];
  const store = {
    prune: async (request: Parameters<InboxStore['prune']>[0]) => {
      calls.push(request);
      return operations.prune?.(request) ?? 0;
    },
    catalog: operations.catalog ?? (async () => ({ version: 1, handlers: known })),
    stats: async () => ({
      deliveries: [{ handler: 'gone', state: 'pending', count: 10_000, more: true }],
    }),
    expectations: operations.expectations,
  } as unknown as InboxStore;
  const registry = new HandlerRegistry();
  registry.add({
    name: 'here',
    source: 'h',
    patterns: ['*'],
    options: {},
    invoke: async () => {},
  });
  const options = resolveWorkerOptions({ retainEventsMs: 5000, retainIdsMs: 9000 });
  const maintenance = new InboxMaintenance(
    store,
    options,
    runtime,
    registry,
    new HandlerCatalogCache(store, registry),
  );
  const seen = (name: string, agoMs: number) =>
    known.push({
      name,
      patterns: ['*'],
      firstSeenAt: new Date(0),
      lastSeenAt: new Date(runtime.now() - agoMs),
    });
  return { runtime, calls, known, seen, maintenance };
}

const BATCH = { bodiesMs: 5000, tombstonesMs: 9000, limit: 500 };

describe('InboxMaintenance', () => {
  it('the maintenance prunes one batch every minute, according to retainEventsMs and retainIdsMs', async () => {
    const { runtime, calls, maintenance } = maintenanceWith();
    maintenance.start();
    await turns(5);
    expect(calls).toEqual([]);
    for (let minute = 1; minute <= 3; minute += 1) {
      runtime.advance(60_000);
      await turns(10);
      expect(calls.splice(0)).toEqual([BATCH]);
    }
  });

  it('IN-26 the maintenance prunes the next batch after a short pause if a batch was full', async () => {
    let left = 1200;
    const { runtime, calls, maintenance } = maintenanceWith({
      prune: async ({ limit }) => {
        const changed = Math.min(limit, left);
        left -= changed;
        return changed;
      },
    });
    maintenance.start();
    runtime.advance(60_000);
    await turns(10);
    expect(calls.splice(0)).toEqual([BATCH]);
    for (let batch = 2; batch <= 3; batch += 1) {
      expect(runtime.nextIn).toBeGreaterThanOrEqual(10);
      expect(runtime.nextIn).toBeLessThan(1000);
      runtime.advance(runtime.nextIn!);
      await turns(10);
      expect(calls.splice(0)).toEqual([BATCH]);
    }
    expect(runtime.nextIn).toBe(60_000);
  });

  it('a failed step of the maintenance does not stop the other steps, and runs again a minute later', async () => {
    const down = () => Promise.reject(new Error('down'));
    const { runtime, calls, maintenance } = maintenanceWith({ catalog: down });
    maintenance.start();
    for (let round = 1; round <= 3; round += 1) {
      runtime.advance(60_000);
      await turns(10);
      expect(calls.splice(0)).toEqual([BATCH]);
    }
    expect(warnings.filter((line) => line.includes('find handlers'))).not.toEqual([]);
  });

  it('the maintenance prunes again a minute after a failed batch', async () => {
    const { runtime, calls, maintenance } = maintenanceWith({
      prune: () => Promise.reject(new Error('down')),
    });
    maintenance.start();
    for (let round = 1; round <= 2; round += 1) {
      runtime.advance(60_000);
      await turns(10);
      expect(calls.splice(0)).toEqual([BATCH]);
    }
  });

  it('stop() waits until the running prune batch has ended, and leaves no timer', async () => {
    let end = (_changed: number): void => {};
    const { runtime, maintenance } = maintenanceWith({
      prune: () => new Promise((resolve) => (end = resolve)),
    });
    maintenance.start();
    runtime.advance(60_000);
    await turns(10);
    let stopped = false;
    const stopping = maintenance.stop().then(() => {
      stopped = true;
    });
    await turns(10);
    expect(stopped).toBe(false);
    end(500);
    await stopping;
    expect(runtime.pending).toBe(0);
  });

  it('EX-03 if no process polls waiting expectations, the maintenance reports this once a day, and reports no orphaned handler', async () => {
    let count = 0;
    const counts = async () => ({ waiting: { count, more: false } });
    const expectations = { counts } as unknown as InboxStore['expectations'];
    const { runtime, seen, maintenance } = maintenanceWith({ expectations });
    seen(POLL_HANDLER, HOUR + 60_000);
    maintenance.start();
    for (count of [0, 3, 3]) {
      runtime.advance(60_000);
      await turns(10);
    }
    expect(warnings).toEqual([
      expect.stringContaining('; 3 expectations wait. Set the option "reconcile"'),
    ]);
  });

  it('prune() prunes up to the given number of events at once', async () => {
    const { calls, maintenance } = maintenanceWith({ prune: async () => 7 });
    expect(await maintenance.prune(10)).toBe(7);
    expect(calls).toEqual([{ ...BATCH, limit: 10 }]);
  });

  it('IN-32 the maintenance logs one line at its start about handlers that this process does not register', async () => {
    const lines: string[] = [];
    jest.spyOn(Logger.prototype, 'log').mockImplementation((line) => void lines.push(String(line)));
    const { known, seen, maintenance } = maintenanceWith();
    seen('here', 0);
    seen('gone', HOUR + 1);
    seen(POLL_HANDLER, 0);
    maintenance.start();
    await turns(10);
    expect(lines).toEqual([]);
    for (let index = 0; index < 12; index += 1) seen(`renamed ${index}`, 1000);
    const started = maintenanceWith({ catalog: async () => ({ version: 1, handlers: known }) });
    started.maintenance.start();
    await turns(10);
    expect(lines).toEqual([
      expect.stringMatching(
        /does not register: "renamed 0", .*, "renamed 9" and 2 more\. .*forgetHandler/,
      ),
    ]);
  });

  it('IN-32 the maintenance reports, at its start and then once per day, a handler that no process has registered for an hour', async () => {
    const { runtime, seen, maintenance } = maintenanceWith();
    seen('here', 2 * HOUR);
    seen('deploying', HOUR - 60_000);
    seen('gone', HOUR + 1);
    maintenance.start();
    await turns(10);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(
      /No process with the handler "gone" has run since 20.*10000\+ deliveries/,
    );
    expect(warnings[0]).toContain("PaymentInbox.forgetHandler('gone')");
    const advance = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute += 1) {
        runtime.advance(60_000);
        await turns(10);
      }
    };
    await advance(2);
    expect(warnings).toHaveLength(2);
    expect(warnings[1]).toContain('"deploying"');
    await advance(24 * 60 - 3);
    expect(warnings).toHaveLength(2);
    await advance(3);
    expect(warnings.slice(2).map((line) => /"(\w+)"/.exec(line)![1])).toEqual([
      'gone',
      'deploying',
    ]);
  });
});
