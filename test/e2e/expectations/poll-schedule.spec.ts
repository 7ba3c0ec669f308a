import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { FakePaymentsApi, TestRuntime } from 'nestjs-payments/testing';
import {
  ExpectingApplication,
  MEMORY,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';
import { company } from '../../support/webhook/webhook-application.js';
import { settled } from '../../support/inbox/settled.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

const { interpret } = RECONCILE;
const HOUR = 3_600_000;

/** The seconds after the creation at which a payment that stays open is polled. */
async function pollSeconds(): Promise<number[]> {
  const runtime = new TestRuntime({ random: 0 });
  const start = runtime.now();
  await using app = await ExpectingApplication.start(MEMORY, { reconcile: { interpret }, runtime });
  const at: number[] = [];
  app.respond(1, () => {
    at.push((runtime.now() - start) / 1000);
    return { status: 'processing' };
  });
  await app.expect(1);
  for (let passed = 0; passed < 30 && (await app.find(1)).state === 'waiting'; passed += 1) {
    const { nextPollAt } = await app.find(1);
    await runtime.advance(Math.max(0, nextPollAt!.getTime() - runtime.now()));
    await settled(app.app);
  }
  expect((await app.find(1)).state).toBe('overdue');
  return at;
}

it('EX-03 with the random number 0, each default delay is multiplied by 0.9', async () => {
  const seconds = await pollSeconds();
  const delays = [15, 60, 300, 900, 3600, 21_600, 86_400];
  expect(seconds).toHaveLength(delays.length);
  for (const [n, delay] of delays.entries()) {
    expect(Math.abs(seconds[n]! - delay * 0.9)).toBeLessThan(0.1);
  }
});

it('EX-03 a poll does not run in the async context of the request that expected or polled a payment', async () => {
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const reconcile = {
    eventTypes: ['transaction.completed'],
    schedule: [50, HOUR],
    interpret: () => {
      seen.push(requests.getStore());
      return 'pending' as const;
    },
  };
  await using app = await ExpectingApplication.start(MEMORY, { reconcile });
  app.respond(1, {});
  await requests.run('expect', () => app.expect(1));
  await eventually(() => expect(seen).toHaveLength(1));
  await requests.run('ask', () => app.ask(1));
  expect(seen).toEqual([undefined, undefined]);
});

it('EX-03 an expectation with its own schedule is polled at the times of that schedule', async () => {
  const runtime = new TestRuntime();
  await using app = await ExpectingApplication.start(MEMORY, { runtime });
  app.respond(1, { status: 'processing' });
  const times = { reference: 'order-1', transactionId: 't-1', schedule: [2000, 4000] };
  await app.expectations.expect(times);
  for (const [afterMs, polls] of [
    [1999, 0],
    [1, 1],
    [1999, 1],
    [1, 2],
    [HOUR, 2],
  ] as const) {
    await runtime.advance(afterMs);
    await settled(app.app);
    expect(app.api.calls).toHaveLength(polls);
  }
});

it('EX-03 polls above the rate of a company are postponed, and delay the polls of no other company', async () => {
  const runtime = new TestRuntime();
  const api = new FakePaymentsApi().respond('GET', '/v1/transactions/{id}', { status: 'new' });
  const companies = [company('busy', 'whsec_busy'), company('calm', 'whsec_calm')];
  const reconcile = { interpret, maxPollsPerSecond: 2, schedule: [1000, HOUR] };
  const options = { companies, reconcile, runtime };
  await using app = await ExpectingApplication.start(MEMORY, options, api);
  for (let n = 0; n < 20; n += 1) await app.expect(n, { company: 'busy' });
  await app.expect('calm', { company: 'calm' });
  const calls = (id: string) => api.calls.filter((call) => call.company === id).length;
  await runtime.advance(1400);
  expect(calls('busy')).toBe(2);
  expect(calls('calm')).toBe(1);
  for (let seconds = 1; seconds <= 9; seconds += 1) {
    const before = calls('busy');
    await runtime.advance(1000);
    expect(calls('busy') - before).toBe(2);
  }
  await runtime.advance(10_000);
  expect(calls('busy')).toBe(20);
  const { expectations } = await app.expectations.list({ company: 'busy', state: 'waiting' });
  expect(expectations.map(({ polls }) => polls)).toEqual(expectations.map(() => 1));
});

it('EX-19 the polls of a company end within 1 s while the service does not respond to 600 polls of another company', async () => {
  const companies = [company('hung', 'whsec_hung'), company('calm', 'whsec_calm')];
  const responds = Promise.withResolvers<void>();
  const api = new FakePaymentsApi().respond('GET', '/v1/transactions/{id}', async (call) => {
    if (call.company === 'hung') await responds.promise;
    return { status: 'complete' };
  });
  const runtime = new TestRuntime();
  await using app = await ExpectingApplication.start(MEMORY, { companies, runtime }, api);
  const ask = async (id: string, count: number) => {
    const names = Array.from({ length: count }, (_, n) => `${id}-${n}`);
    for (const name of names) await app.expect(name, { company: id });
    await app.expectations.askNow(
      names.map((name) => ({ company: id, reference: `order-${name}` })),
    );
  };
  const callsOf = (id: string) => api.calls.filter((call) => call.company === id);
  await ask('hung', 600);
  await runtime.advance(50);
  expect(callsOf('hung')).toHaveLength(5);
  await ask('calm', 40);
  await runtime.advance(999);
  await eventually(async () => {
    const query = { company: 'calm', state: 'fulfilled', limit: 100 } as const;
    expect((await app.expectations.list(query)).expectations).toHaveLength(40);
  });
  expect(callsOf('hung')).toHaveLength(5);
  responds.resolve();
});

it('EX-03 after 20 s, the signal of a poll aborts, the result of the poll is unknown, and the poll is repeated', async () => {
  const runtime = new TestRuntime();
  let aborted: AbortSignal | undefined;
  const find = (_: string, __: unknown, { signal }: { signal: AbortSignal }) => {
    aborted = signal;
    return new Promise<never>(() => {});
  };
  const reconcile = { ...RECONCILE, find };
  await using app = await ExpectingApplication.start(MEMORY, { reconcile, runtime });
  await app.expectations.expect({ reference: 'order-1' });
  await app.expectations.askNow({ reference: 'order-1' });
  await runtime.advance(19_999);
  expect((await app.find(1)).lastPoll).toBeNull();
  await runtime.advance(1);
  await settled(app.app);
  expect(aborted!.aborted).toBe(true);
  expect(await app.find(1)).toMatchObject({ state: 'waiting', lastPoll: { result: 'unknown' } });
  expect((await app.find(1)).nextPollAt).not.toBeNull();
});

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('EX-03 the process that stored an expectation polls the payment on time', async () => {
    const runtime = new TestRuntime();
    const reconcile = { interpret };
    await using app = await ExpectingApplication.start(await durable.data(), {
      reconcile,
      runtime,
    });
    await settled(app.app);
    app.respond(1, { status: 'processing' }, { status: 'complete' });
    await app.expect(1);
    await runtime.advance(14_999);
    expect(app.api.calls).toHaveLength(0);
    // The clock of the store may be a millisecond ahead: another process opened the file before.
    await runtime.advance(2);
    await settled(app.app);
    expect(await app.find(1)).toMatchObject({ state: 'waiting', polls: 1 });
    // The clock advances in two steps, with a claim between them, because a process claims again after 30 s at the
    // latest.
    await runtime.advance(30_000);
    await settled(app.app);
    await runtime.advance(15_001);
    await settled(app.app);
    expect(await app.find(1)).toMatchObject({ state: 'fulfilled', polls: 2 });
  });

  it('EX-03 without a background worker, polls run only in runDue(), which does not count them', async () => {
    const worker = { background: false };
    await using app = await ExpectingApplication.start(await durable.data(), { worker });
    app.respond(1, { status: 'complete' });
    await app.expect(1);
    await app.expectations.askNow({ reference: 'order-1' });
    expect((await app.find(1)).polls).toBe(0);
    // The poll is not counted; the two handlers of its event are.
    expect(await app.inbox.runDue()).toEqual({ done: 2, failed: 0, more: false });
    expect(await app.find(1)).toMatchObject({ state: 'fulfilled', polls: 1 });
  });

  it('EX-03 a paused inbox makes no polls until it is resumed', async () => {
    await using app = await ExpectingApplication.start(await durable.data());
    app.respond(1, { status: 'complete' });
    await app.expect(1);
    await app.inbox.pause('@payments/poll');
    expect((await app.ask(1)).polls).toBe(0);
    await app.inbox.resume('@payments/poll');
    await settled(app.app);
    expect((await app.find(1)).state).toBe('fulfilled');
  });
});
