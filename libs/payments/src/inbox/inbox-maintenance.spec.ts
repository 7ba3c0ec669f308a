import { Logger } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/fake.runtime.js';
import { turns } from '../../../../test/support/worker.bench.js';
import { InboxPruner } from './inbox.pruner.js';
import type { InboxStore } from './inbox-store.js';
import { resolveWorkerOptions } from './worker-options.js';

Logger.overrideLogger(false);

/** A pruner at a store that answers as the test says. */
function bench(prune: InboxStore['prune']) {
  const runtime = new FakeRuntime();
  const requests: unknown[] = [];
  const store = {
    prune: (request: Parameters<InboxStore['prune']>[0]) => {
      requests.push(request);
      return prune(request);
    },
  } as InboxStore;
  const options = resolveWorkerOptions({ keepMs: 5000, knowMs: 9000 });
  return { runtime, requests, pruner: new InboxPruner(store, options, runtime) };
}

describe('InboxPruner', () => {
  it('prunes a batch every minute, by the times of the options', async () => {
    const { runtime, requests, pruner } = bench(async () => 0);
    pruner.start();
    expect(requests).toEqual([]);
    for (let minute = 1; minute <= 3; minute += 1) {
      runtime.advance(60_000);
      await turns();
      expect(requests).toHaveLength(minute);
    }
    expect(requests[0]).toEqual({ bodiesMs: 5000, tombstonesMs: 9000, limit: 500 });
  });

  it('goes on soon while there is more, with a pause between two batches', async () => {
    let left = 1200;
    const { runtime, requests, pruner } = bench(async ({ limit }) => {
      const touched = Math.min(limit, left);
      left -= touched;
      return touched;
    });
    pruner.start();
    runtime.advance(60_000);
    await turns();
    expect(requests).toHaveLength(1);
    for (const batches of [2, 3]) {
      expect(runtime.nextIn).toBeGreaterThanOrEqual(10);
      expect(runtime.nextIn).toBeLessThan(1000);
      runtime.advance(runtime.nextIn!);
      await turns();
      expect(requests).toHaveLength(batches);
    }
    expect(runtime.nextIn).toBe(60_000);
  });

  it('tries again a minute after the store failed it, by rejection or by exception', async () => {
    for (const broken of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
    ]) {
      const { runtime, requests, pruner } = bench(broken);
      pruner.start();
      for (const round of [1, 2]) {
        runtime.advance(60_000);
        await turns();
        expect(requests).toHaveLength(round);
      }
    }
  });

  it('stops once a batch under way has ended, and leaves no timer', async () => {
    let end = (_touched: number): void => {};
    const { runtime, pruner } = bench(() => new Promise((resolve) => (end = resolve)));
    pruner.start();
    runtime.advance(60_000);
    let stopped = false;
    const stopping = pruner.stop().then(() => {
      stopped = true;
    });
    await turns();
    expect(stopped).toBe(false);
    end(500);
    await stopping;
    expect(runtime.pending).toBe(0);
  });

  it('prunes as many as it is asked to, now', async () => {
    const { requests, pruner } = bench(async () => 7);
    expect(await pruner.prune(10)).toBe(7);
    expect(requests).toEqual([{ bodiesMs: 5000, tombstonesMs: 9000, limit: 10 }]);
  });
});
