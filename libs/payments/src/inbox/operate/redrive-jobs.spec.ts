import { afterEach, describe, expect, it } from '@jest/globals';
import { WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { turns } from '../../../../../test/support/time/waiting.js';
import { none } from '../../events/retry-schedule.js';
import { resolveWorkerOptions } from '../work/worker-options.js';
import { InboxRedrive } from './inbox-redrive.js';
import { RedriveJobs } from './redrive-jobs.js';

const OPTIONS = { retry: none, concurrency: 1000 };

const processes: Process[] = [];
afterEach(() => {
  for (const one of processes.splice(0)) one.close();
});

/** A process with a worker. A failed delivery is dead at once. */
class Process {
  readonly jobs: RedriveJobs;
  /** Called with the number of the batch, before its progress is stored. */
  onBatch: (batch: number) => void = () => {};
  #batches = 0;

  private constructor(readonly harness: WorkerHarness) {
    const { ownStore: store, catalog, runtime, worker } = harness;
    const redrive = new InboxRedrive(store, catalog);
    const page = redrive.page.bind(redrive);
    redrive.page = async (plan, ...rest) => {
      const result = await page(plan, ...rest);
      if (!plan.query.dryRun) this.onBatch((this.#batches += 1));
      return result;
    };
    this.jobs = new RedriveJobs(store, resolveWorkerOptions(OPTIONS), runtime, redrive, worker);
    worker.start();
    processes.push(this);
  }

  static async start(): Promise<Process> {
    const started = new Process(await WorkerHarness.shared(OPTIONS));
    await turns(50);
    return started;
  }

  /** Starts another process on the same store, whose wall clock is ahead of the store clock by `ms` milliseconds. */
  async another(ms = 0): Promise<Process> {
    const { store, runtime: shared } = this.harness;
    const runtime = Object.assign(new FakeRuntime(), {
      now: () => shared.now() + ms,
      monotonic: () => shared.monotonic(),
      schedule: (...args: Parameters<FakeRuntime['schedule']>) => shared.schedule(...args),
      advance: (passed: number) => shared.advance(passed),
    });
    const started = new Process(new WorkerHarness(OPTIONS, { of: { store, runtime } }));
    await turns(50);
    return started;
  }

  /** Stores events whose only attempt fails. */
  async receiveDead(count: number): Promise<void> {
    this.harness.handle = () => {
      throw new Error('no');
    };
    for (let n = 0; n < count; n += 1) await this.harness.receive(`e-${n}`);
    await turns(50);
    this.harness.handle = () => {};
    this.harness.ran.splice(0);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) {
      this.harness.runtime.advance(500);
      await turns(50);
    }
  }

  async job() {
    return (await this.jobs.list())[0]!;
  }

  /** Stops its work. A process that has crashed never ends. */
  close(): void {
    void this.harness.worker.drain();
    void this.jobs.close();
  }
}

describe('RedriveJobs', () => {
  it('OP-03 a redrive makes events due at its rate, stores its progress, and counts the deliveries that fail again', async () => {
    const one = await Process.start();
    await one.receiveDead(35);
    one.harness.handle = ({ id }) => {
      if (id.endsWith('7')) throw new Error('still no');
    };
    const started = await one.jobs.start({}, { ratePerSecond: 10, startedBy: 'ann' });
    const total = { events: 35, deliveries: 35 };
    expect(started).toMatchObject({ state: 'running', total, events: 0, startedBy: 'ann' });
    await turns(50);
    const other = await one.another();
    for (const events of [10, 20, 30, 35]) {
      expect(await other.job()).toMatchObject({ state: 'running', events, deliveries: events });
      expect(one.harness.ran.length + other.harness.ran.length).toBeLessThanOrEqual(events);
      await one.pass(1000);
    }
    await one.pass(6000);
    expect(one.harness.ran.length + other.harness.ran.length).toBe(35);
    expect(await other.job()).toMatchObject({ state: 'done', total, ...total, failed: 3 });
  });

  it('OP-03 an operator of any process stops a redrive, and the progress of the stopped redrive is right', async () => {
    const one = await Process.start();
    await one.receiveDead(50);
    const { id } = await one.jobs.start({}, { ratePerSecond: 10 });
    await one.pass(1000);
    const other = await one.another();
    expect(await other.jobs.stop(id)).toBe(true);
    await one.pass(10_000);
    const stopped = await other.job();
    expect(stopped.state).toBe('stopped');
    expect(one.harness.ran.length + other.harness.ran.length).toBe(stopped.events);
    expect(stopped.events).toBeGreaterThanOrEqual(20);
    expect(stopped.events).toBeLessThanOrEqual(30);
    expect(await other.jobs.stop(id)).toBe(false);
    expect(await other.jobs.stop('unknown')).toBe(false);
  });

  it('OP-03 a stopped redrive also counts the deliveries that fail again after the stop', async () => {
    const one = await Process.start();
    await one.receiveDead(50);
    one.harness.handle = () => {
      throw new Error('still no');
    };
    const { id } = await one.jobs.start({}, { ratePerSecond: 10 });
    await one.pass(2000);
    expect(await one.jobs.stop(id)).toBe(true);
    await one.pass(10_000);
    const { state, deliveries, failed } = await one.job();
    expect([state, failed]).toEqual(['stopped', deliveries]);
    expect(one.harness.ids).toHaveLength(deliveries);
  });

  it('OP-04 if a process dies before it stores the progress of its redrive, another process continues the redrive and runs no delivery twice', async () => {
    const one = await Process.start();
    for (let n = 0; n < 40; n += 1) await one.harness.receive(`e-${n}`);
    await turns(50);
    one.harness.ran.splice(0);
    one.onBatch = (batch) => {
      if (batch === 3) one.harness.crash();
    };
    await one.pass(1000);
    await one.jobs.start({ force: true }, { ratePerSecond: 10 });
    await one.pass(3000);
    const other = await one.another();
    await other.pass(10_000);
    expect(await other.job()).toMatchObject({ state: 'running', events: 20 });
    await other.pass(30_000);
    const ran = [...one.harness.ids, ...other.harness.ids];
    expect(ran.toSorted()).toEqual([...new Set(ran)].toSorted());
    expect(ran).toHaveLength(40);
    expect(await other.job()).toMatchObject({ state: 'done' });
  });

  it.each([-600_000, 600_000])(
    'OP-04 a redrive runs each delivery once, even if the clock of the process that started the redrive is wrong by %i ms',
    async (ms) => {
      const one = await Process.start();
      for (let n = 0; n < 40; n += 1) await one.harness.receive(`e-${n}`);
      await turns(50);
      one.harness.ran.splice(0);
      await one.pass(1000);
      const wrong = await one.another(ms);
      wrong.onBatch = (batch) => {
        if (batch === 3) wrong.harness.crash();
      };
      const { startedAt } = await wrong.jobs.start({ force: true }, { ratePerSecond: 10 });
      expect(startedAt.getTime()).toBe(one.harness.runtime.now());
      await one.pass(40_000);
      const ran = [...one.harness.ids, ...wrong.harness.ids];
      expect(ran.toSorted()).toEqual([...new Set(ran)].toSorted());
      expect(ran).toHaveLength(40);
      expect(await one.job()).toMatchObject({ state: 'done', events: 40 });
    },
  );

  it('OP-04 a redrive that repeats a batch leaves out the deliveries that have died again since the first run of the batch', async () => {
    const one = await Process.start();
    await one.receiveDead(40);
    one.onBatch = (batch) => {
      if (batch === 3) one.harness.crash();
    };
    const handle = (): void => {
      throw new Error('still no');
    };
    one.harness.handle = handle;
    await one.pass(1000);
    await one.jobs.start({}, { ratePerSecond: 10 });
    await one.pass(3000);
    const other = await one.another();
    other.harness.handle = handle;
    await other.pass(40_000);
    const ran = [...one.harness.ids, ...other.harness.ids];
    expect(ran.toSorted()).toEqual([...new Set(ran)].toSorted());
    expect(ran).toHaveLength(40);
    expect(await other.job()).toMatchObject({ state: 'done' });
  });

  it('OP-04 another process can continue or stop a redrive even if there are 100 newer redrives', async () => {
    const one = await Process.start();
    await one.receiveDead(30);
    const { id } = await one.jobs.start({}, { ratePerSecond: 1 });
    one.harness.crash();
    const { records } = one.harness.store;
    await records.put({ kind: 'job', key: 'old', body: '{"query":{},"state":"running"}' });
    await one.pass(1000);
    for (let n = 0; n < 100; n += 1) {
      const body = '{"query":{"search":"\\"state\\":\\"running\\""},"state":"done"}';
      await records.put({ kind: 'job', key: `${n}`, body });
    }
    const other = await one.another();
    expect(await other.jobs.stop('old')).toBe(true);
    await other.pass(80_000);
    const job = (await other.jobs.list()).find((one) => one.id === id);
    expect(job).toMatchObject({ state: 'done', events: 30 });
  });

  it('OP-04 a process closes within 5 s if the store does not respond', async () => {
    const one = await Process.start();
    await one.receiveDead(30);
    one.onBatch = () => one.harness.crash();
    await one.jobs.start({}, { ratePerSecond: 10 });
    await turns(50);
    let closed = false;
    void one.harness.worker.drain();
    void one.jobs.close().then(() => (closed = true));
    await one.pass(4500);
    expect(closed).toBe(false);
    await one.pass(500);
    expect(closed).toBe(true);
  });

  it('OP-04 another process continues the redrive of a process that closes, at its next heartbeat', async () => {
    const one = await Process.start();
    await one.receiveDead(30);
    const other = await one.another();
    await one.jobs.start({}, { ratePerSecond: 1 });
    await one.pass(2000);
    const closing = one.harness.worker.drain();
    await one.jobs.close();
    await closing;
    const { events } = await other.job();
    expect(events).toBeLessThan(5);
    await other.pass(6000);
    expect((await other.job()).events).toBeGreaterThan(events);
    await other.pass(40_000);
    expect(await other.job()).toMatchObject({ state: 'done', events: 30 });
    expect([...one.harness.ids, ...other.harness.ids]).toHaveLength(30);
  });

  it('OP-04 a redrive continues after the store was unavailable', async () => {
    const one = await Process.start();
    await one.receiveDead(30);
    one.onBatch = (batch) => {
      if (batch === 2) throw new Error('the connection was lost');
    };
    await one.jobs.start({}, { ratePerSecond: 10 });
    await one.pass(20_000);
    expect(await one.job()).toMatchObject({ state: 'done' });
    expect(one.harness.ids).toHaveLength(30);
  });

  it('OP-04 a redrive whose record cannot be read does not stop the other redrives', async () => {
    const one = await Process.start();
    await one.receiveDead(30);
    const { records } = one.harness.store;
    await one.jobs.start({}, { ratePerSecond: 10 });
    await one.pass(1000);
    one.harness.crash();
    await records.put({ kind: 'job', key: 'cut', body: '{"query":{' });
    await records.put({ kind: 'job', key: 'other', body: '{}' });
    const other = await one.another();
    await other.pass(40_000);
    expect(await other.jobs.list()).toMatchObject([{ state: 'done', events: 30 }]);
    expect(await other.jobs.stop('cut')).toBe(false);
  });

  it('OP-04 a process that closes during a batch hands the redrive over at once', async () => {
    const one = await Process.start();
    await one.receiveDead(30);
    let closed = false;
    one.onBatch = () => {
      void one.harness.worker.drain();
      void one.jobs.close().then(() => (closed = true));
    };
    await one.jobs.start({}, { ratePerSecond: 1 });
    await turns(100);
    expect(closed).toBe(true);
    expect(await one.job()).toMatchObject({ state: 'running', events: 1 });
  });

  it('OP-03 a redrive leaves out events that are received after its start', async () => {
    const one = await Process.start();
    await one.receiveDead(20);
    await one.jobs.start({ force: true, handler: 'h' }, { ratePerSecond: 1 });
    for (let n = 0; n < 20; n += 1) {
      await one.pass(1000);
      await one.harness.receive(`later-${n}`);
    }
    await one.pass(20_000);
    expect(await one.job()).toMatchObject({ state: 'done', events: 20 });
    expect(one.harness.ids.filter((id) => id.startsWith('later'))).toHaveLength(20);
  });

  it('a redrive fails with the reason if one of its handlers is removed', async () => {
    const one = await Process.start();
    await one.receiveDead(1);
    await one.jobs.start({ handlers: ['h'] }, {});
    await one.harness.store.records.remove('job', (await one.job()).id);
    const job = { query: { handlers: ['gone'] }, ratePerSecond: 1, state: 'running', more: true };
    const body = JSON.stringify({ ...job, startedAt: new Date(0), owner: null, after: null });
    await one.harness.store.records.put({ kind: 'job', key: 'old', body });
    await one.pass(6000);
    expect(await one.job()).toMatchObject({
      state: 'failed',
      error: 'No handler is named "gone". Known handlers: h.',
    });
  });

  it('a redrive with an unknown handler, an invalid rate or too many ids is not started', async () => {
    const one = await Process.start();
    await expect(one.jobs.start({ handlers: ['bock'] }, {})).rejects.toThrow(
      'No handler is named "bock"',
    );
    for (const ratePerSecond of [0, -1, Number.NaN, 1001, '5' as never, null as never]) {
      await expect(one.jobs.start({}, { ratePerSecond })).rejects.toThrow(TypeError);
    }
    await expect(one.jobs.start({ ids: ['x'.repeat(20_000)] }, {})).rejects.toThrow(TypeError);
    expect(await one.jobs.list()).toEqual([]);
  });
});
