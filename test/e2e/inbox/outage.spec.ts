import { expect, it } from '@jest/globals';
import { fixed } from 'nestjs-payments';
import { post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { Gate } from '../../support/time/gate.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

/** The time within which the sender must get its response, in milliseconds. */
const BOUND_MS = 10_000;

onEachDurableInbox(
  (durable) => {
    it('IN-08 IN-25 the response is 503 while PostgreSQL is down, and the inbox recovers when PostgreSQL runs again', async () => {
      if (!durable.server().controllable) return;
      const data = await durable.data();
      const gate = new Gate();
      const handle: Handle = async ({ id }, { attempt }) => {
        if (id === 'running') await gate.pass();
        if (id === 'waiting' && attempt === 1) throw new Error('not yet');
      };
      // The retry becomes due while the server is down, or soon after.
      const worker = { retry: fixed(Array.from({ length: 10 }, () => 1500)) };
      await using app = await startOn(data, { book: handle }, { worker });
      await post(app, 'running');
      await gate.arrival;
      await post(app, 'waiting');
      await eventually(async () =>
        // On a slow machine, the retry may have ended already.
        expect((await states(app, 'waiting'))['book']).toMatch(/^(pending 1|done 2)$/),
      );
      await durable.server().stop('fast');
      const begun = performance.now();
      const responses = await Promise.all(
        Array.from({ length: 10 }, (_, index) => app.send(webhookRequest({ id: `down ${index}` }))),
      );
      expect(performance.now() - begun).toBeLessThan(BOUND_MS);
      for (const { status, body } of responses) {
        expect([status, body['code']]).toEqual([503, 'inbox_unavailable']);
      }
      // The handler ends while its outcome cannot be stored.
      gate.open();
      await eventually(() => expect(app.log.matching(/could not be stored/)).not.toHaveLength(0));
      await durable.server().start();
      await eventually(async () =>
        expect(await states(app, 'running')).toEqual({ book: 'done 1' }),
      );
      await eventually(async () =>
        expect(await states(app, 'waiting')).toEqual({ book: 'done 2' }),
      );
      expect(gate.entered).toBe(1);
      // On a slow machine, the retry ended before the outage, so the worker claimed nothing during the outage.
      const failed = app.log.matching(/inbox could not be read/);
      expect(failed.length).toBeLessThanOrEqual(1);
      await eventually(() =>
        expect(app.log.matching(/inbox can be read again/)).toHaveLength(failed.length),
      );
      expect(await post(app, 'down 0')).toBe(200);
      await eventually(async () => expect(await states(app, 'down 0')).toEqual({ book: 'done 1' }));
    });
  },
  ['postgres'],
);
