import { expect, it } from '@jest/globals';
import { receiver, throwNo } from '../../../../../test/support/inbox/receiver-harness.js';
import { logged } from '../../../../../test/support/log/captured-log.js';
import type { EventSource, StoreReceipt } from '../store/inbox-store.js';
import { VerifiedEvent } from './verified-event.js';

/** Receives an event of the module itself, with a body that contains `amount`. */
async function receiveOwn(
  harness: ReturnType<typeof receiver>,
  amount: number,
  { source = 'poll', eventType = 't' }: { source?: EventSource; eventType?: string } = {},
) {
  const { made, runtime, store } = harness;
  const timestamp = new Date(runtime.now()).toISOString();
  const event = { id: 'own', eventType, timestamp, data: { amount }, metadata: {} };
  const raw = Buffer.from(JSON.stringify(event));
  const verified = new VerifiedEvent('c', event, raw, runtime.monotonic(), {}, source);
  let outcome: StoreReceipt['outcome'] | null = null;
  await made.receiveOwn(verified, async (incoming) => {
    const [receipt] = await store.receive([incoming]);
    ({ outcome } = receipt!);
    return receipt!;
  });
  return outcome;
}

it('EX-04 receiveOwn() stores an event with its source, and does not wait for its handlers', async () => {
  const harness = receiver();
  harness.worker.handle = throwNo;
  expect(await receiveOwn(harness, 1)).toBe('stored');
  expect(await harness.find('own')).toMatchObject({ source: 'poll' });
});

it('EX-04 receiveOwn() works while the application closes, because no sender repeats a poll', async () => {
  const harness = receiver();
  harness.worker.working = false;
  expect(await receiveOwn(harness, 1)).toBe('stored');
});

it('EX-04 a second event of the module with the same id and another body is a duplicate', async () => {
  const harness = receiver();
  await receiveOwn(harness, 1);
  await logged(async (log) => {
    expect(await receiveOwn(harness, 2)).toBe('conflict');
    expect(log.lines).toEqual([]);
  });
  const { raw } = await harness.find('own');
  expect(JSON.parse(raw!.toString())).toMatchObject({ data: { amount: 1 } });
});

it('EX-04 receiveOwn() rejects if the store rejects the event', async () => {
  const harness = receiver();
  harness.store.receive = throwNo;
  await expect(receiveOwn(harness, 1)).rejects.toThrow('no');
});

it('EX-07 receiveOwn() reports and logs nothing of an event that was not stored', async () => {
  const { made, runtime } = receiver();
  const event = {
    id: 'own',
    eventType: 't',
    timestamp: new Date(0).toISOString(),
    data: {},
    metadata: {},
  };
  const verified = new VerifiedEvent(
    'c',
    event,
    Buffer.from('{}'),
    runtime.monotonic(),
    {},
    'overdue',
  );
  await logged(async (log) => {
    await made.receiveOwn(verified, async () => null);
    expect(log.lines).toEqual([]);
  });
});
