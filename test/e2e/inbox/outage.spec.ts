import { DatabaseSync } from 'node:sqlite';
import { expect, it } from '@jest/globals';
import { exponential, fixed } from 'nestjs-payments';
import { post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { Gate } from '../../support/time/gate.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { book, onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

/** The time within which the sender must get its response, in milliseconds. */
const BOUND_MS = 10_000;

onEachDurableInbox(
  (durable) => {
    it('IN-08 IN-25 the response is 503 within 10 s while the database is locked, and the inbox recovers after the lock', async () => {
      const data = await durable.data();
      const gate = new Gate();
      const handle: Handle = async ({ id }, context) => {
        if (id === 'running') await gate.pass();
        await book(data, context, id);
      };
      await using app = await startOn(data, { book: handle });
      await post(app, 'running');
      await gate.arrival;
      const other = new DatabaseSync(data.child.where);
      // The thread of the store may still be committing the claim, so this connection may have to wait for the lock.
      other.exec('PRAGMA busy_timeout = 5000');
      other.exec('BEGIN IMMEDIATE');
      const begun = performance.now();
      const responses = await Promise.all(['a', 'b'].map((id) => app.send(webhookRequest({ id }))));
      expect(performance.now() - begun).toBeLessThan(BOUND_MS);
      for (const { status, body } of responses) {
        expect([status, body['code']]).toEqual([503, 'inbox_unavailable']);
      }
      // The commit of the handler fails, too.
      gate.open();
      await eventually(() => expect(app.log.matching(/event running .* failed/)).not.toEqual([]));
      other.exec('ROLLBACK');
      other.close();
      await eventually(async () => expect(await data.effects()).toEqual(['running']));
      expect(await post(app, 'a')).toBe(200);
      await eventually(async () => expect(await data.effects()).toEqual(['a', 'running']));
    });
  },
  ['sqlite'],
);

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

    it('IN-25 every effect of a handler happens once although the database connections are cut again and again', async () => {
      const data = await durable.data();
      const handle: Handle = async ({ id }, context) => void (await book(data, context, id));
      const options = { worker: { retry: exponential({ attempts: 100, firstMs: 1, maxMs: 1 }) } };
      await using a = await startOn(data, { book: handle }, options);
      await using b = await startOn(data, { book: handle }, options);
      const acknowledged: string[] = [];
      for (let round = 0; round < 10; round += 1) {
        const ids = Array.from({ length: 20 }, (_, index) => `${round}-${index}`);
        const statuses = ids.map((id, index) => post(index % 2 ? a : b, id));
        await Promise.race(statuses);
        await durable.server().cutConnections(data.child.where);
        for (const [index, status] of (await Promise.all(statuses)).entries()) {
          expect([200, 503]).toContain(status);
          if (status === 200) acknowledged.push(ids[index]!);
        }
      }
      expect(acknowledged).not.toEqual([]);
      await eventually(async () => {
        const effects = new Set(await data.effects());
        expect(acknowledged.filter((id) => !effects.has(id))).toEqual([]);
      });
      const effects = await data.effects();
      expect(effects).toHaveLength(new Set(effects).size);
      await eventually(async () => expect(await post(a, 'after')).toBe(200));
      await eventually(async () => expect(await states(a, 'after')).toEqual({ book: 'done 1' }));
    });
  },
  ['postgres'],
);
