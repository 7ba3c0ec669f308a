import { describe, expect, it } from '@jest/globals';
import { memoryInbox } from 'nestjs-payments';
import { eventually } from '../../support/time/waiting.js';
import { inboxOf, startOn } from '../../support/inbox/inbox-application.js';

describe('the activity of an inbox in memory', () => {
  const start = (options: Parameters<typeof startOn>[2] = {}) =>
    startOn({ inbox: () => memoryInbox() }, { book: () => {} }, options);

  it('IN-38 activity() is complete only for the last "worker.retainEventsMs", because older events may be pruned', async () => {
    await using app = await start({ worker: { retainEventsMs: 600_000 } });
    const { completeFrom } = await inboxOf(app).activity();
    const agoMs = Date.now() - completeFrom.getTime();
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
          name: 'book',
          patterns: ['*'],
          here: true,
          firstSeenAt: expect.any(Date),
          lastSeenAt: expect.any(Date),
        },
      ]),
    );
  });
});
