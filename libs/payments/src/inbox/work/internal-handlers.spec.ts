import { expect, it } from '@jest/globals';
import {
  pass,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';
import type { InternalHandler } from './internal-handlers.js';
import type { SettleAction } from './settle-attempt.js';

const COMPLETE: SettleAction = {
  write: (store, delivery) => store.complete(delivery),
  outcome: 'completed',
  retryInMs: null,
  keepSlotMs: 0,
  log: () => {},
};

/** A worker with a handler of the module itself. */
function internal(run: InternalHandler['run'], timeoutMs = 5000): WorkerHarness {
  const harness = new WorkerHarness();
  harness.internal.add({ name: 'own', patterns: [], options: { timeoutMs }, run });
  return harness;
}

it('EX-03 the worker runs a handler of the module itself and settles its delivery as the handler says', async () => {
  const ran: string[] = [];
  const harness = internal(async ({ id }) => {
    ran.push(id);
    return ran.length === 1
      ? { ...COMPLETE, write: (store, lease) => store.release(lease, 3000), retryInMs: 3000 }
      : COMPLETE;
  });
  await started(harness);
  await harness.receive('a', null, ['own']);
  await turns();
  expect(await harness.delivery('a', 'own')).toMatchObject({ state: 'pending', attempts: 0 });
  await pass(harness, 3);
  expect(ran).toEqual(['a', 'a']);
  expect(await harness.isDone('a', 'own')).toBe(true);
});

it('EX-06 a handler of the module itself that fails is not charged, and its delivery runs again after 60 s', async () => {
  let runs = 0;
  const harness = internal(async () => {
    runs += 1;
    throw new Error('the inbox is full');
  });
  await started(harness);
  await harness.receive('a', null, ['own']);
  await turns();
  for (let minute = 1; minute <= 20; minute += 1) {
    expect(runs).toBe(minute);
    expect(await harness.delivery('a', 'own')).toMatchObject({ state: 'pending', attempts: 0 });
    await pass(harness, 60);
  }
});

it('EX-06 a handler of the module itself that exceeds its time limit is not charged, and its signal aborts', async () => {
  let signal: AbortSignal | undefined;
  const harness = internal((_, given) => {
    signal = given;
    return new Promise(() => {});
  });
  await started(harness);
  await harness.receive('a', null, ['own']);
  await turns();
  await pass(harness, 5);
  expect(signal!.aborted).toBe(true);
  expect(await harness.delivery('a', 'own')).toMatchObject({ state: 'pending', attempts: 0 });
});

it('EX-03 a closing application aborts a handler of the module itself and releases its delivery, due now', async () => {
  const harness = internal((_, signal) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  }, 60_000);
  await started(harness);
  await harness.receive('a', null, ['own']);
  await turns();
  const drained = harness.worker.drain();
  await pass(harness, 25);
  await drained;
  expect(await harness.delivery('a', 'own')).toMatchObject({ state: 'pending', attempts: 0 });
  expect(await harness.store.nextDueInMs(['own'])).toBeLessThanOrEqual(0);
});
