import { describe, expect, it } from '@jest/globals';
import { memoryInbox, UnrecoverableError } from 'nestjs-payments';
import type { ActivityCounts, ActivityMinute } from 'nestjs-payments';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import { eventually } from '../../support/time/waiting.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { book, onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';

/** Sums of received, done, failed and dead over all minutes, because a test may end in a later minute than it began. */
function sum(minutes: readonly ActivityMinute[], handler?: string): number[] {
  const counts = minutes.map(({ total, handlers }) =>
    handler === undefined ? total : handlers[handler],
  );
  const of = (name: 'received' | 'done' | 'failed' | 'dead') =>
    counts.reduce((total, minute) => total + (minute?.[name] ?? 0), 0);
  return [of('received'), of('done'), of('failed'), of('dead')];
}

/** A runtime whose wall clock the test can advance, so that minutes close. */
function movedClock() {
  let aheadMs = 0;
  return {
    runtime: { ...systemRuntime, now: () => Date.now() + aheadMs },
    closeMinute: () => void (aheadMs += 75_000),
  };
}

const doomed: Handle = (event) => {
  if (event.id === 'doomed') throw new UnrecoverableError('never');
};

describe('the activity of an inbox in memory', () => {
  const start = (runtime = systemRuntime, options: Parameters<typeof startOn>[2] = {}) =>
    startOn({ inbox: () => memoryInbox() }, { doomed }, { ...options, runtime });

  it('activity() counts received, done, failed and dead in a closed minute', async () => {
    const { runtime, closeMinute } = movedClock();
    await using app = await start(runtime);
    const inbox = inboxOf(app);
    expect(await post(app, 'a')).toBe(200);
    expect(await post(app, 'a')).toBe(200);
    expect(await post(app, 'doomed')).toBe(503);
    closeMinute();
    const { minutes, completeFrom } = await inbox.activity(3);
    expect(completeFrom).toEqual(minutes[0]!.startsAt);
    expect(sum(minutes)).toEqual([2, 1, 1, 1]);
    expect(sum(minutes, 'doomed')).toEqual([2, 1, 1, 1]);
    const { p50Ms, p95Ms } = minutes
      .map(({ total }): ActivityCounts => total)
      .find(({ done }) => done > 0)!;
    expect(p50Ms).toBeGreaterThanOrEqual(0);
    expect(p95Ms).toBe(p50Ms);
  });

  it('IN-38 activity() is complete only for the last "worker.retainEventsMs", because older events may be pruned', async () => {
    const { runtime } = movedClock();
    await using app = await start(runtime, { worker: { retainEventsMs: 600_000 } });
    const { completeFrom } = await inboxOf(app).activity();
    const agoMs = runtime.now() - completeFrom.getTime();
    expect(agoMs).toBeGreaterThan(500_000);
    expect(agoMs).toBeLessThan(600_000);
  });

  it('activity() rejects a number of minutes that is not a whole number from 1 to 1440', async () => {
    await using app = await start();
    const inbox = inboxOf(app);
    expect((await inbox.activity()).minutes).toHaveLength(60);
    expect((await inbox.activity(1440)).minutes).toHaveLength(1440);
    for (const minutes of [0, 1441, 1.5, NaN, '5' as never]) {
      await expect(inbox.activity(minutes)).rejects.toThrow(TypeError);
    }
  });

  it('PaymentInbox returns the capabilities and the handlers of a memory inbox', async () => {
    await using app = await start();
    expect(inboxOf(app).capabilities).toMatchObject({ durable: false, shared: false });
    await eventually(async () =>
      expect(await inboxOf(app).handlers()).toEqual([
        {
          name: 'doomed',
          patterns: ['*'],
          here: true,
          firstSeenAt: expect.any(Date),
          lastSeenAt: expect.any(Date),
        },
      ]),
    );
  });
});

// PostgreSQL uses its own clock, which this test cannot advance. The contract suite tests closed minutes on PostgreSQL.
onEachDurableInbox(
  (durable) => {
    it('IN-38 activity() counts settled and committed deliveries per handler, and another process reads the counts', async () => {
      const data = await durable.data();
      const { runtime, closeMinute } = movedClock();
      const commits: Handle = (_event, context) => book(data, context, 'booked');
      {
        await using app = await startOn(data, { commits, doomed }, { runtime });
        expect(await post(app, 'a')).toBe(200);
        expect(await post(app, 'doomed')).toBe(200);
        await eventually(async () => {
          expect(await states(app, 'a')).toEqual({ commits: 'done 1', doomed: 'done 1' });
          expect(await states(app, 'doomed')).toEqual({ commits: 'done 1', doomed: 'dead 1' });
        });
      }
      closeMinute();
      await using other = await startOn(data, {}, { runtime });
      const { minutes } = await inboxOf(other).activity(5);
      expect(sum(minutes)).toEqual([2, 3, 1, 1]);
      expect(sum(minutes, 'commits')).toEqual([2, 2, 0, 0]);
      expect(sum(minutes, 'doomed')).toEqual([2, 1, 1, 1]);
    });
  },
  ['sqlite'],
);
