import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { none } from 'nestjs-payments';
import type {
  ObservedInbox,
  PaymentsInstrumentation,
} from '../../../libs/payments/src/telemetry/observers.js';
import { apiError } from 'nestjs-payments/testing';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
} from '../../support/inbox/expecting-application.js';
import { Metrics } from '../../support/telemetry/otel-sdk.js';
import { eventually } from '../../support/time/waiting.js';

onMemoryAndSqlite((data) => {
  it('TE-04 gauges show the deliveries of each handler by state, the age of the oldest delivery, and paused handlers', async () => {
    const metrics = new Metrics();
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const book = () => {
      throw new Error('broken');
    };
    const options = { observers: [metrics.observer], worker: { retry: none } };
    const handlers = { book, hold: () => released, idle: () => {} };
    await using app = await startOn(await data(), handlers, options);
    // The memory inbox responds when the handlers have ended.
    const sent = [post(app, 'e-1', {})];
    const deliveries = (): Promise<Record<string, number>> => metrics.values('payments.deliveries');
    await eventually(async () =>
      expect(await deliveries()).toMatchObject({ 'handler=book state=dead': 1 }),
    );
    await inboxOf(app).pause('book');
    sent.push(post(app, 'e-2', {}));
    await eventually(async () =>
      expect(await deliveries()).toEqual({
        'handler=book state=dead': 1,
        'handler=book state=pending': 1,
        'handler=book state=running': 0,
        'handler=hold state=dead': 0,
        'handler=hold state=pending': 0,
        'handler=hold state=running': 2,
        'handler=idle state=dead': 0,
        'handler=idle state=pending': 0,
        'handler=idle state=running': 0,
      }),
    );
    expect(await metrics.values('payments.handler.paused')).toEqual({
      'handler=book': 1,
      'handler=hold': 0,
      'handler=idle': 0,
    });
    const { '': age } = await metrics.values('payments.deliveries.oldest_age');
    expect(age).toBeGreaterThan(0);
    expect(age).toBeLessThan(90);
    release();
    await inboxOf(app).resume('book');
    await Promise.all(sent);
    await eventually(async () => {
      expect(await metrics.values('payments.deliveries.oldest_age')).toEqual({ '': 0 });
    });
  });

  it('TE-04 EX-07 gauges show how many expected payments are waiting, overdue and not paid, or overdue with an unknown status', async () => {
    const metrics = new Metrics();
    const observers = [metrics.observer];
    await using app = await ExpectingApplication.start(await data(), { observers });
    for (const n of [3, 4]) app.respond(n, apiError(404));
    for (const n of [1, 2, 6]) await app.expect(n);
    app.respond(5, { status: 'processing' });
    for (const n of [3, 4, 5]) await app.expect(n, { dueBy: new Date('2026-01-01') });
    await eventually(async () =>
      expect(await metrics.values('payments.expectations')).toEqual({
        'state=waiting': 3,
        'state=overdue_unpaid': 1,
        'state=overdue_unknown': 2,
      }),
    );
  });
});

/** The state of an inbox without handlers. */
const EMPTY = {
  handlers: async () => [],
  stats: async () => ({ deliveries: [], oldestPendingMs: null, paused: [] }),
  expectations: async () => ({
    waiting: { count: 0 },
    overdueUnpaid: { count: 0 },
    overdueUnknown: { count: 0 },
  }),
  engine: async () => null,
} satisfies ObservedInbox;

describe('reads of the gauges', () => {
  const undo: (() => void)[] = [];
  afterEach(() => {
    for (const detach of undo.splice(0)) detach();
  });
  const attach = (metrics: Metrics, inbox: Partial<ObservedInbox>): void => {
    undo.push(metrics.observer.attach!({ ...EMPTY, ...inbox }));
  };

  it('TE-04 scrapes read the store at most once per second, and the store is not read without a scrape', async () => {
    const now = jest.spyOn(performance, 'now').mockReturnValue(5000);
    undo.push(() => now.mockRestore());
    const metrics = new Metrics();
    let reads = 0;
    attach(metrics, { stats: () => ((reads += 1), EMPTY.stats()) });
    expect(reads).toBe(0);
    await Promise.all(Array.from({ length: 10 }, () => metrics.collect()));
    now.mockReturnValue(5999);
    await metrics.collect();
    expect(reads).toBe(1);
    now.mockReturnValue(6000);
    await metrics.collect();
    expect(reads).toBe(2);
  });

  it('TE-04 the gauges start no second read of the store while the store does not respond to the first read', async () => {
    const now = jest.spyOn(performance, 'now').mockReturnValue(5000);
    undo.push(() => now.mockRestore());
    const metrics = new Metrics();
    let reads = 0;
    attach(metrics, { stats: () => ((reads += 1), new Promise(() => {})) });
    const first = metrics.collect();
    now.mockReturnValue(60_000);
    await Promise.all([first, metrics.collect()]);
    await metrics.collect();
    expect(reads).toBe(1);
  });

  it.each<[string, Partial<ObservedInbox>]>([
    ['is down', { stats: () => Promise.reject(new Error('the database is down')) }],
    ['does not respond', { handlers: () => new Promise(() => {}) }],
    [
      'throws',
      {
        expectations: () => {
          throw new Error('closed');
        },
      },
    ],
  ])(
    'TE-04 if the store %s, payments.store.up is 0, and a scrape has all counters',
    async (_what, inbox) => {
      const metrics = new Metrics();
      attach(metrics, inbox);
      metrics.observer.requestRejected!({
        code: 'signature_missing',
        company: null,
        eventId: null,
        message: '',
      });
      const page = await metrics.scrape();
      expect(page).toContain('payments_requests_rejected_total{error_type="signature_missing"');
      expect(page).toMatch(/^payments_store_up\{.*\} 0$/m);
      expect(page).not.toContain('payments_deliveries{');
      expect(page).not.toContain('payments_expectations{');
    },
  );

  it('TE-04 the gauge of a handler becomes 0 if the store no longer returns deliveries of the handler', async () => {
    const metrics = new Metrics();
    const delivery = { handler: 'book', state: 'dead', count: 3 } as const;
    let deliveries = [delivery];
    attach(metrics, { stats: async () => ({ ...(await EMPTY.stats()), deliveries }) });
    const dead = async () =>
      (await metrics.values('payments.deliveries'))['handler=book state=dead'];
    expect(await dead()).toBe(3);
    deliveries = [];
    await eventually(async () => expect(await dead()).toBe(0));
  });

  it('TE-04 gauges are read from the start of the application until it closes', async () => {
    const calls: string[] = [];
    const metrics = new Metrics();
    const observer: PaymentsInstrumentation = {
      attach: (inbox) => {
        calls.push('attach');
        const stats = () => (calls.push('stats'), inbox.stats());
        const detach = metrics.observer.attach!({ ...inbox, stats });
        return () => {
          calls.push('detach');
          detach();
        };
      },
    };
    {
      await using _ = await startOn(MEMORY, { book: () => {} }, { observers: [observer] });
      expect(await metrics.values('payments.store.up')).toEqual({ '': 1 });
    }
    await metrics.collect();
    expect(calls).toEqual(['attach', 'stats', 'detach']);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['returns garbage', () => 'garbage' as never],
    [
      'returns a function that throws',
      () => () => {
        throw new Error('broken');
      },
    ],
  ])(
    'TE-04 an application starts and closes even if attach() of an observer %s',
    async (_what, attachBroken) => {
      const metrics = new Metrics();
      const observers: PaymentsInstrumentation[] = [{ attach: attachBroken }, metrics.observer];
      await using _ = await startOn(MEMORY, { book: () => {} }, { observers });
      expect(await metrics.values('payments.store.up')).toEqual({ '': 1 });
    },
  );

  it('TE-04 an instrumentation records no metrics with metrics: false, and no traces with traces: false', async () => {
    const metrics = new Metrics();
    expect(Object.keys(metrics.observe({ traces: true, metrics: false }))).toEqual(['startSpan']);
    expect(metrics.observe({ traces: false })).not.toHaveProperty('startSpan');
    await using _ = await startOn(MEMORY, {}, { observers: [metrics.observe({ metrics: false })] });
    expect([...(await metrics.collect()).keys()]).toEqual([]);
  });
});
