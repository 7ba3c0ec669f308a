import { expect, it } from '@jest/globals';
import { receiver, throwNo } from '../../../../../test/support/inbox/receiver-harness.js';
import { logged } from '../../../../../test/support/log/captured-log.js';
import type { EventSource } from '../store/inbox-store.js';
import { VerifiedEvent } from './verified-event.js';

/** Receives an event of the module itself, with a body that contains `amount`. */
async function receiveOwn(
  harness: ReturnType<typeof receiver>,
  amount: number,
  { source = 'poll', eventType = 't' }: { source?: EventSource; eventType?: string } = {},
) {
  const { made, runtime } = harness;
  const timestamp = new Date(runtime.now()).toISOString();
  const event = { id: 'own', eventType, timestamp, data: { amount }, metadata: {} };
  const raw = Buffer.from(JSON.stringify(event));
  const verified = new VerifiedEvent('c', event, raw, runtime.monotonic(), {}, source);
  return made.receiveOwn(verified);
}

it('EX-04 receiveOwn() stores an event with its source, and does not wait for its handlers', async () => {
  const harness = receiver();
  harness.worker.handle = throwNo;
  expect(await receiveOwn(harness, 1)).toEqual({ id: 'own', status: 'stored' });
  expect(await harness.find('own')).toMatchObject({ source: 'poll' });
});

it('EX-04 receiveOwn() works while the application closes, because no sender repeats a poll', async () => {
  const harness = receiver();
  harness.worker.working = false;
  expect((await receiveOwn(harness, 1)).status).toBe('stored');
});

it('EX-04 a second event of the module with the same id and another body is a duplicate', async () => {
  const harness = receiver();
  await receiveOwn(harness, 1);
  await logged(async (log) => {
    expect(await receiveOwn(harness, 2)).toEqual({ id: 'own', status: 'duplicate' });
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
