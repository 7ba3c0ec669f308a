import { afterEach, describe, expect, it } from '@jest/globals';
import { memoryInbox } from 'nestjs-payments';
import type { PaymentsRuntime } from 'nestjs-payments';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import { Gate } from '../../support/time/gate.js';
import { AT_ONCE, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { MerchantProcess } from '../../support/inbox/merchant-process.js';
import { book, onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

let running: MerchantProcess[] = [];
afterEach(async () => {
  await Promise.all(running.map((merchant) => merchant.kill()));
  running = [];
});

onEachDurableInbox((durable) => {
  it('IN-24 close() waits for running attempts, claims no further deliveries, and still stores new events', async () => {
    const data = await durable.data();
    const gate = new Gate();
    const handle: Handle = async ({ id }, context) => {
      await gate.pass();
      await book(data, context, id);
    };
    const app = await startOn(data, { book: handle }, { worker: { ...AT_ONCE, concurrency: 1 } });
    await post(app, 'running');
    await gate.arrival;
    await post(app, 'waiting');
    let closed = false;
    const closing = app.app.close().then(() => {
      closed = true;
    });
    expect(await post(app, 'late')).toBe(200);
    expect(closed).toBe(false);
    gate.open();
    await closing;
    expect(gate.entered).toBe(1);
    expect(await data.effects()).toEqual(['running']);
    await using next = await startOn(data, { book: handle });
    for (const id of ['running', 'waiting', 'late']) {
      await eventually(async () => expect(await states(next, id)).toEqual({ book: 'done 1' }));
    }
    expect(await data.effects()).toEqual(['late', 'running', 'waiting']);
  });

  it('IN-24 SIGTERM drains the worker, and the next process runs the deliveries that have not started', async () => {
    const data = await durable.data();
    const worker = { ...AT_ONCE, concurrency: 1 };
    const merchant = await MerchantProcess.start(data, { worker, hooks: true });
    running.push(merchant);
    await merchant.send('running', 'book on continue');
    await merchant.reported('ran running 1');
    await merchant.send('waiting', 'book');
    merchant.signal('SIGTERM');
    // The process accepts webhook requests during the drain, because its server closes after the drain.
    expect(await merchant.send('late', 'book')).toBe(200);
    expect(merchant.lines).not.toContain('ended running');
    merchant.continueHandlers();
    expect((await merchant.ended).code ?? 0).toBe(0);
    expect(merchant.lines.filter((line) => !line.startsWith('ready'))).toEqual([
      'ran running 1',
      'ended running',
    ]);
    expect(merchant.output).not.toMatch(/ERROR/);
    const next = await MerchantProcess.start(data, { worker });
    running.push(next);
    await next.reported('ended late');
    await next.reported('ended waiting');
    expect(next.lines.slice().filter((line) => line.startsWith('ran'))).toEqual(
      expect.arrayContaining(['ran waiting 1', 'ran late 1']),
    );
    expect(await data.effects()).toEqual(['late', 'running', 'waiting']);
  });
});

onEachDurableInbox(
  (durable) => {
    it('IN-24 close() resolves in bounded time while a commit hangs, and the commit takes effect once', async () => {
      const data = await durable.data();
      const gate = new Gate();
      const handle: Handle = (_event, context) =>
        context.commit(async (tx) => {
          await data.write(tx, 'paid');
          await gate.pass();
        });
      const worker = { ...AT_ONCE, drainMs: 50, leaseMs: 1000 };
      const app = await startOn(data, { book: handle }, { worker });
      await post(app, 'paid');
      await gate.arrival;
      const begun = performance.now();
      await app.app.close();
      expect(performance.now() - begun).toBeLessThan(10_000);
      expect(await data.effects()).toEqual([]);
      // The commit can still end, because this process continues to run after close(), unlike a process in production.
      gate.open();
      await using next = await startOn(data, { book: handle }, { worker });
      await eventually(
        async () => expect(await states(next, 'paid')).toEqual({ book: 'done 1' }),
        30_000,
      );
      expect(await data.effects()).toEqual(['paid']);
    });
  },
  ['postgres'],
);

describe('the check of shutdown hooks after boot', () => {
  /** A runtime whose timers of 5 s fire when the test calls `pass()`. */
  function hasty() {
    const due: (() => void)[] = [];
    const runtime: PaymentsRuntime = {
      ...systemRuntime,
      schedule: (ms, callback) => {
        if (ms !== 5000) return systemRuntime.schedule(ms, callback);
        due.push(callback);
        return () => void due.splice(due.indexOf(callback), 1);
      },
    };
    return { runtime, due, pass: () => due.splice(0).forEach((callback) => callback()) };
  }
  const WARNING = /^warn .*The application has no shutdown hooks/;

  onEachDurableInbox(
    (durable) => {
      it('the shutdown check logs a warning 5 s after boot if shutdown hooks are off', async () => {
        const { runtime, pass } = hasty();
        await using app = await startOn(await durable.data(), {}, { runtime });
        expect(app.log.matching(WARNING)).toEqual([]);
        pass();
        expect(app.log.matching(WARNING)).toHaveLength(1);
      });

      it('the shutdown check logs nothing if shutdown hooks are on or the application has closed', async () => {
        const { runtime, due, pass } = hasty();
        const data = await durable.data();
        const main = (app: { enableShutdownHooks(): unknown }) => void app.enableShutdownHooks();
        await using app = await startOn(data, {}, { runtime, main });
        expect(due).toHaveLength(1);
        pass();
        expect(app.log.matching(WARNING)).toEqual([]);
        const closed = await startOn(data, {}, { runtime });
        await closed.app.close();
        expect(due).toEqual([]);
      });
    },
    ['sqlite'],
  );

  it('the shutdown check logs nothing for a memory inbox', async () => {
    const { runtime, due } = hasty();
    const data = { inbox: () => memoryInbox() } as never;
    await using _app = await startOn(data, {}, { runtime });
    expect(due).toEqual([]);
  });
});
