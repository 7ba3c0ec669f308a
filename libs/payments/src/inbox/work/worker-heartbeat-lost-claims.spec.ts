import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../../test/support/log/captured-log.js';
import {
  blockHandlers,
  pass,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';

describe('WorkerHeartbeat: lost responses of the store', () => {
  it('IN-25 failed receives cause at most one registration per second', async () => {
    const harness = await started(new WorkerHarness());
    let registered = 0;
    const register = harness.store.register.bind(harness.store);
    harness.store.register = (worker) => {
      registered += 1;
      return register(worker);
    };
    for (let second = 0; second < 5; second += 1) {
      for (let failure = 0; failure < 20; failure += 1) {
        harness.worker.reserve(['h'])?.start(null);
        await turns();
      }
      harness.runtime.advance(1000);
      await turns();
    }
    expect(registered).toBeGreaterThan(2);
    expect(registered).toBeLessThan(7);
    expect(await harness.assign('a')).toEqual(['h']);
  });

  it('IN-25 after a failed claim, the worker claims under a new id and logs one line', async () => {
    for (const broken of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
    ]) {
      const log = new CapturedLog();
      Logger.overrideLogger(log);
      const harness = await started(new WorkerHarness());
      const claim = harness.store.claim.bind(harness.store);
      const workers = new Set<string>();
      harness.store.claim = (request) => {
        workers.add(request.worker);
        return broken();
      };
      await harness.receive('a');
      await turns();
      for (let second = 0; second < 10; second += 1) {
        harness.runtime.advance(1000);
        await turns();
        harness.worker.wake();
        await turns();
      }
      expect(workers.size).toBeGreaterThan(2);
      // The worker backs off, even if it is woken.
      expect(workers.size).toBeLessThan(8);
      expect(log.matching(/could not be read: Error: down/)).toHaveLength(1);
      expect(log.matching(/can be read again/)).toHaveLength(0);
      harness.store.claim = claim;
      harness.runtime.advance(5000);
      await turns();
      expect(await harness.isDone('a')).toBe(true);
      expect(log.matching(/can be read again/)).toHaveLength(1);
      Logger.overrideLogger(false);
    }
  });

  it('IN-25 deliveries of a claim whose response was lost are freed and run', async () => {
    const harness = await started(await WorkerHarness.shared());
    const claim = harness.store.claim.bind(harness.store);
    harness.store.claim = async (request) => {
      harness.store.claim = claim;
      await claim(request);
      throw new Error('the connection was cut');
    };
    await harness.receive('a');
    await turns();
    harness.runtime.advance(1000);
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(harness.ids).toEqual(['a']);
  });

  it('IN-25 deliveries that were assigned by a receive whose response was lost are freed and run', async () => {
    const harness = await started(await WorkerHarness.shared());
    let end = () => {};
    harness.handle = () => new Promise<void>((resolve) => (end = resolve));
    await harness.assign('running');
    const reservation = harness.worker.reserve(['h'])!;
    const start = reservation.start.bind(reservation);
    harness.worker.reserve = () => ({ ...reservation, start: () => start(null) });
    await harness.assign('lost');
    await turns();
    expect(harness.ids).toEqual(['running']);
    expect(await harness.delivery('lost')).toMatchObject({ state: 'running' });
    // The worker id retires when the attempts that are known to use it have ended.
    harness.runtime.advance(1000);
    await turns();
    expect(await harness.delivery('lost')).toMatchObject({ state: 'running' });
    harness.handle = () => {};
    end();
    await turns();
    await turns();
    expect(await harness.delivery('running')).toMatchObject({ state: 'done', attempts: 1 });
    expect(await harness.delivery('lost')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-25 a worker id that becomes unused during a heartbeat retires after it, not at the next one', async () => {
    const harness = await started(await WorkerHarness.shared());
    const reservation = harness.worker.reserve(['h'])!;
    const start = reservation.start.bind(reservation);
    harness.worker.reserve = () => ({ ...reservation, start: () => start(null) });
    await harness.assign('lost');
    await pass(harness, 2);
    expect(await harness.delivery('lost')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-16 a worker id does not retire during a claim, so no delivery of the claim is freed and runs twice', async () => {
    const harness = await started(await WorkerHarness.shared());
    const { store } = harness;
    const claim = store.claim.bind(store);
    const retire = store.retire.bind(store);
    let respond = () => {};
    store.claim = async (request) => {
      store.claim = claim;
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (respond = resolve));
      return claimed;
    };
    // The claim took effect before the retirement, and its response arrives first.
    store.retire = async (id, graceMs) => {
      await retire(id, graceMs);
      respond();
      await turns();
    };
    blockHandlers(harness);
    await harness.receive('a');
    await turns();
    harness.worker.reserve(['h'])!.start(null);
    await pass(harness, 12);
    respond();
    await pass(harness, 12);
    expect(harness.ids).toEqual(['a']);
    expect(await harness.delivery('a')).toMatchObject({ state: 'running', attempts: 1 });
  });
});
