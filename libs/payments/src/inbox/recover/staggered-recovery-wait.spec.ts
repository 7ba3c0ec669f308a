import { describe, expect, it } from '@jest/globals';
import { withSuspect } from '../../../../../test/support/inbox/crashing-processes.js';
import type { CrashingProcesses } from '../../../../../test/support/inbox/crashing-processes.js';
import { pass, turns } from '../../../../../test/support/inbox/worker-harness.js';
import type { WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';

/** Whether the worker has no slot for a new delivery. */
function isClosed({ worker }: WorkerHarness): boolean {
  const reservation = worker.reserve(['h']);
  reservation?.start([]);
  return reservation === null;
}

/** A process in which an attempt hangs while a suspect waits to run alone for the first time. */
async function waiting(): Promise<{ processes: CrashingProcesses; harness: WorkerHarness }> {
  const processes = await withSuspect();
  const harness = processes.start(null);
  await turns();
  await harness.assign('hangs');
  while (!isClosed(harness)) await pass(harness, 1);
  return { processes, harness };
}

describe('the wait of a suspect to run alone', () => {
  it('IN-19 a suspect runs alone although the process always has attempts of 45 s', async () => {
    const processes = await withSuspect();
    const harness = processes.start(null);
    await turns();
    const ends = new Map<string, number>();
    let seconds = 0;
    for (; seconds < 600 && !processes.ran[2]!.includes('suspect'); seconds += 1) {
      for (const [id, at] of ends) if (at === seconds && ends.delete(id)) await processes.end(id);
      if (!isClosed(harness)) {
        await harness.assign(`long-${seconds}`);
        ends.set(`long-${seconds}`, seconds + 45);
      }
      await pass(harness, 1);
    }
    expect(ends.size).toBe(0);
    // The waits are 1, 2, 4, 8, 16, 32 and 64 s, each with a pause of the same length after it.
    expect(seconds).toBeLessThan(2 * 63 + 64);
    await processes.end('suspect');
    expect(await harness.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-19 the first wait for a suspect is 1 s again after another process ran the suspect of earlier waits', async () => {
    const { processes, harness } = await waiting();
    await pass(harness, 40);
    expect(processes.ran[2]).toEqual(['hangs']);
    // Another process runs the suspect, and dies 100 s later.
    const worker = 'another';
    await harness.store.register({ id: worker, leaseMs: 100_000, handlers: [] });
    expect(
      await harness.store.claimSuspect({ worker, handlers: ['h'], alone: true }),
    ).toMatchObject({ id: 'suspect' });
    await pass(harness, 98);
    expect(isClosed(harness)).toBe(false);
    while (!isClosed(harness)) await pass(harness, 1);
    await pass(harness, 1);
    expect(isClosed(harness)).toBe(false);
    expect(processes.ran[2]).toEqual(['hangs']);
  });

  it('IN-19 a process that was frozen during a wait delays the suspect no longer than after a normal wait', async () => {
    const { processes, harness } = await waiting();
    // The event loop stands still for five minutes: the timers run, and their promises resolve after it.
    harness.runtime.advance(300_000);
    await turns();
    await processes.end('hangs');
    await pass(harness, 60);
    expect(processes.ran[2]).toEqual(['hangs', 'suspect']);
  });

  it('IN-24 drain() does not wait for the pause between two waits', async () => {
    const { processes, harness } = await waiting();
    while (!isClosed(harness)) await pass(harness, 1);
    while (isClosed(harness)) await pass(harness, 1);
    let drained = false;
    void harness.worker.drain().then(() => (drained = true));
    await processes.end('hangs');
    expect(drained).toBe(true);
    expect(processes.ran[2]).toEqual(['hangs']);
  });
});
