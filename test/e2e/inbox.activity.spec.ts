import { describe, expect, it } from '@jest/globals';
import { memoryInbox, UnrecoverableError } from 'nestjs-payments';
import type { ActivityMinute } from 'nestjs-payments';
import { eventually } from '../support/eventually.js';
import { inboxOf, post, startOn } from '../support/inbox.application.js';
import type { Handle } from '../support/inbox.application.js';
import { book, onEachDurableInbox } from '../support/inbox.stages.js';

/** A test may begin in one minute and end in the next. */
function sum(minutes: readonly ActivityMinute[]): number[] {
  const of = (name: 'received' | 'handled' | 'failed' | 'dead') =>
    minutes.reduce((total, minute) => total + minute[name], 0);
  return [of('received'), of('handled'), of('failed'), of('dead')];
}

const doomed: Handle = (event) => {
  if (event.id === 'doomed') throw new UnrecoverableError('never');
};

describe('the activity of an inbox in memory', () => {
  const start = () => startOn({ inbox: () => memoryInbox() }, { doomed }, {});

  it('counts what was received, handled before the answer, failed and given up', async () => {
    await using app = await start();
    expect(await post(app, 'a')).toBe(200);
    expect(await post(app, 'a')).toBe(200);
    expect(await post(app, 'doomed')).toBe(503);
    const minutes = await inboxOf(app).activity(2);
    expect(sum(minutes)).toEqual([2, 1, 1, 1]);
    const handled = minutes.find((minute) => minute.handled > 0)!;
    expect(handled.p50Ms).toBeGreaterThan(0);
    expect(handled.p95Ms).toBeGreaterThan(0);
  });

  it('is told for a number of minutes, and refuses what is none', async () => {
    await using app = await start();
    const inbox = inboxOf(app);
    expect(await inbox.activity()).toHaveLength(60);
    expect(await inbox.activity(1440)).toHaveLength(1440);
    for (const minutes of [0, 1441, 1.5, NaN, '5' as never]) {
      await expect(inbox.activity(minutes)).rejects.toThrow(TypeError);
    }
  });

  it('stands beside what the inbox is capable of, and its handlers', async () => {
    await using app = await start();
    expect(inboxOf(app).capabilities).toMatchObject({ durable: false, shared: false });
    expect(inboxOf(app).handlers()).toEqual(['doomed']);
  });
});

onEachDurableInbox((stage) => {
  it('counts settlements and commits, and what one process did is seen by another', async () => {
    const data = await stage.data();
    const commits: Handle = (_event, context) => book(data, context, 'booked');
    {
      await using app = await startOn(data, { commits, doomed });
      expect(await post(app, 'a')).toBe(200);
      expect(await post(app, 'doomed')).toBe(200);
      await eventually(async () =>
        expect(sum(await inboxOf(app).activity(5))).toEqual([2, 3, 1, 1]),
      );
      // Not shown any more, so this is what closing records.
      expect(await post(app, 'b')).toBe(200);
    }
    await using other = await startOn(data, {});
    await eventually(async () => {
      const [received] = sum(await inboxOf(other).activity(5));
      expect(received).toBe(3);
    });
  });

  it('shows how each attempt ended, through a retry and a redrive', async () => {
    const data = await stage.data();
    let broken = true;
    const mended: Handle = () => {
      if (broken) throw new Error('the ledger is locked');
    };
    await using app = await startOn(
      data,
      { mended },
      {
        worker: { firstRetryMs: 1, maxRetryMs: 1, maxAttempts: 2 },
      },
    );
    await post(app, 'a');
    const history = async () => {
      const event = await inboxOf(app).get('a');
      return event!.deliveries[0]!.history.map(({ attempt, outcome, error }) => [
        attempt,
        outcome,
        error,
      ]);
    };
    const failures = [1, 2].map((attempt) => [attempt, 'failed', 'Error: the ledger is locked']);
    await eventually(async () => expect(await history()).toEqual(failures));
    broken = false;
    await inboxOf(app).redrive({ ids: ['a'] });
    await eventually(async () => expect(await history()).toEqual([...failures, [1, 'done', null]]));
  });
});
