import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { none, OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { consoleOnEachAdapter, Receipts } from '../../support/console/console-application.js';
import type { ConsoleApplication } from '../../support/console/console-application.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import type { SigningCompany } from '../../support/webhook/signed-webhook.js';
import { company } from '../../support/webhook/webhook-application.js';

/** Fails with the text `fail` of an event. */
@Injectable()
class Ledger {
  @OnPaymentEvent('transaction.completed', { name: 'Ledger.post', retry: none })
  post({ data }: PaymentEvent): void {
    const { fail } = data as { fail?: string };
    if (fail !== undefined) throw new Error(fail);
  }
}

interface ConsoleArrivals {
  readonly minutes: readonly { readonly accepted: number; readonly rejected: number }[];
  readonly rejections: readonly { readonly message: string }[];
}

const NO_DELIVERIES = { pending: 0, running: 0, done: 0, dead: 0, skipped: 0, failed: 0 };

const deliver = (app: ConsoleApplication, id: string, data: Record<string, unknown>) =>
  app.deliver({ id, data });

const groupsOf = async (app: ConsoleApplication) => {
  const { status, body } = await app.get('/api/failures');
  expect(status).toBe(200);
  return body['groups'] as { handler: string; error: string; count: number }[];
};

/** Three failures that differ only in an id, and another one. */
async function fail(app: ConsoleApplication): Promise<void> {
  for (const [n, id] of ['e-1', 'e-2', 'e-3'].entries()) {
    await deliver(app, id, { fail: `HTTP 503 from ledger, request a1b2c3d${n}` });
    app.runtime.advance(60_000);
  }
  await deliver(app, 'e-4', { fail: 'no such account' });
  await deliver(app, 'e-5', {});
}

consoleOnEachAdapter((start) => {
  it('the console shows handlers, counts and the times of the newest events', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' });
    await app.deliver({ id: 'e-2' }, 'dead');
    await app.deliver({ id: 'e-3', eventType: 'nobody.knows' });
    await app.post('pause', { handler: 'Orders.markPaid' });
    const handler = 'Orders.markPaid';
    const { body, headers } = await app.get('/api/overview?minutes=3');
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    expect(body).toMatchObject({
      now: new Date(app.runtime.now()).toISOString(),
      who: 'ann',
      capabilities: { durable: false, transactional: false },
      handlers: [{ name: handler, here: true, lastSeenAt: expect.any(String) }],
      stats: {
        deliveries: [{ handler, state: 'dead', count: 1, more: false }],
        unhandled: { count: 1, more: false },
        oldestPendingMs: null,
        paused: [{ handler }],
      },
      arrivals: {
        lastRequestAt: new Date(app.runtime.now()).toISOString(),
        lastAcceptedAt: new Date(app.runtime.now()).toISOString(),
        poll: null,
        overdue: null,
        usualGapMs: null,
        late: false,
        rejectedInARow: 0,
        // With the memory inbox, the service has to send an event again whose handler failed.
        rejections: [{ code: 'handlers_failed', count: 1 }],
      },
    });
  });

  it.each([
    { gapMs: 120_000, requests: 11, burst: 1, lateAfterMs: 360_000 },
    { gapMs: 60_000, requests: 11, burst: 1, lateAfterMs: 300_000 },
    { gapMs: 1_200_000, requests: 11, burst: 120, lateAfterMs: 3_600_000 },
    { gapMs: 120_000, requests: 10, burst: 120, lateAfterMs: null },
  ])(
    'the console shows whether the next webhook request is late: %j',
    async ({ gapMs, requests, burst, lateAfterMs }) => {
      await using app = await start();
      for (let n = 1; n <= requests; n += 1) {
        app.runtime.advance(gapMs);
        await app.deliver({ id: `e-${n}` });
      }
      for (let n = 1; n < burst; n += 1) {
        app.runtime.advance(10);
        await app.deliver({ id: `burst-${n}` });
      }
      const lastAcceptedAt = new Date(app.runtime.now()).toISOString();
      const usualGapMs = lateAfterMs === null ? null : gapMs;
      const expectLate = async (afterMs: number, late: boolean) => {
        app.runtime.advance(afterMs);
        const { arrivals } = (await app.get('/api/overview')).body;
        expect(arrivals).toMatchObject({ lastAcceptedAt, usualGapMs, late });
      };
      await expectLate(lateAfterMs ?? 3_600_000, false);
      await expectLate(5000, lateAfterMs !== null);
    },
  );

  it('OP-20 the console counts accepted and rejected webhook requests separately, and shows why requests were rejected', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' });
    app.runtime.advance(60_000);
    const forged = signedWebhook({ webhookSecret: 'whsec_of_another_company' }, { id: 'e-2' });
    for (let n = 0; n < 4; n += 1) expect((await app.merchant.send(forged)).status).toBe(401);
    const { arrivals } = (await app.get('/api/overview')).body as { arrivals: ConsoleArrivals };
    const [last, now] = arrivals.minutes.slice(-2);
    expect([last, now]).toMatchObject([
      { accepted: 1, rejected: 0 },
      { accepted: 0, rejected: 4 },
    ]);
    expect(arrivals).toMatchObject({
      lastRequestAt: new Date(app.runtime.now()).toISOString(),
      lastAcceptedAt: new Date(app.runtime.now() - 60_000).toISOString(),
      rejectedInARow: 4,
      rejections: [
        {
          code: 'signature_mismatch',
          company: 'default',
          count: 4,
          message: expect.stringContaining(
            'Check that the webhook secret of this company is the one',
          ),
        },
      ],
    });
    expect(app.log.join()).toContain(arrivals.rejections[0]!.message);
    await app.deliver({ id: 'e-3' });
    expect((await app.get('/api/overview')).body).toMatchObject({
      arrivals: { rejectedInARow: 4 },
    });
    app.runtime.advance(1000);
    expect((await app.get('/api/overview')).body).toMatchObject({
      arrivals: { rejectedInARow: 0 },
    });
  });

  it('OP-20 the console names a company whose webhook requests are all rejected while those of others are accepted', async () => {
    const [acme, bolt] = [company('acme', 'whsec_of_acme'), company('bolt', 'whsec_of_bolt')];
    await using app = await start({ payments: { companies: [acme, bolt] } });
    const send = async (sender: SigningCompany, ...ids: string[]) => {
      for (const id of ids) await app.merchant.send(signedWebhook(sender, { id }));
    };
    const rejected = async () => {
      app.runtime.advance(60_000);
      const { arrivals } = (await app.get('/api/overview')).body;
      return (arrivals as { rejectedCompanies: object[] }).rejectedCompanies;
    };
    const forged = { id: 'bolt', webhookSecret: 'whsec_old' };
    await send(forged, 'b-1');
    await send(acme, 'a-1');
    const code = 'signature_mismatch';
    const message = expect.stringContaining('Check that the webhook secret');
    expect(await rejected()).toEqual([{ company: 'bolt', count: 1, code, message }]);
    await send(bolt, 'b-1');
    expect(await rejected()).toEqual([]);
    // A few rejected requests among accepted ones.
    await send(forged, 'b-2', 'b-3');
    await send(acme, 'a-2');
    expect(await rejected()).toEqual([]);
    await send(forged, 'b-4');
    expect(await rejected()).toEqual([{ company: 'bolt', count: 3, code, message }]);
  });

  it('IN-38 the console shows closed minutes, and the deliveries of the events that were received in these minutes', async () => {
    await using app = await start({ providers: [Receipts] });
    expect((await app.get('/api/overview')).body).toMatchObject({
      arrivals: { lastRequestAt: null },
    });
    await app.deliver({ id: 'e-1' });
    await app.deliver({ id: 'e-2' }, 'dead');
    app.runtime.advance(60_000);
    await app.deliver({ id: 'e-3' });
    expect((await app.get('/api/overview')).body).toMatchObject({
      range: { events: { webhook: 3 }, deliveries: { done: 5, dead: 1 } },
    });
    app.runtime.advance(180_000);
    type Counts = { received: number; done: number; failed: number; dead: number };
    const overview = async (minutes: number) => {
      const { body } = await app.get(`/api/overview?minutes=${minutes}`);
      const rows = body['handlers'] as { name: string; activity: Counts }[];
      return {
        activity: body['activity'] as (Counts & { startsAt: string })[],
        completeFrom: body['completeFrom'],
        handlers: Object.fromEntries(rows.map(({ name, activity }) => [name, activity])),
      };
    };
    const { activity, completeFrom, handlers } = await overview(60);
    expect(completeFrom).toBe(activity[0]!.startsAt);
    const busy = activity.filter(({ received }) => received > 0);
    expect(busy).toMatchObject([
      { received: 2, done: 3, failed: 1, dead: 1, p50Ms: 0, p95Ms: 0 },
      { received: 1, done: 2, failed: 0, dead: 0 },
    ]);
    expect(Date.parse(busy[1]!.startsAt) - Date.parse(busy[0]!.startsAt)).toBe(60_000);
    expect(handlers).toMatchObject({
      'Orders.markPaid': { ...NO_DELIVERIES, done: 2, failed: 1, dead: 1, p50Ms: 0, p95Ms: 0 },
      'Receipts.send': { ...NO_DELIVERIES, done: 3, p50Ms: 0, p95Ms: 0 },
    });
    const countedAt = new Date(app.runtime.now()).toISOString();
    app.runtime.advance(5000);
    expect((await app.get('/api/overview?minutes=60')).body['range']).toEqual({
      countedAt,
      events: { webhook: 3, poll: 0, test: 0, overdue: 0 },
      deliveries: { ...NO_DELIVERIES, done: 5, dead: 1, failed: 1, p50Ms: 0, p95Ms: 0 },
    });
    const quiet = await overview(1);
    expect(quiet.activity).toHaveLength(1);
    expect(quiet.handlers['Receipts.send']).toEqual({
      ...NO_DELIVERIES,
      p50Ms: null,
      p95Ms: null,
    });
  });

  it('the console queries the inbox once per second for any number of open pages, and at once after an action', async () => {
    await using app = await start();
    const inbox = app.merchant.app.get(PaymentInbox);
    const stats = inbox.stats.bind(inbox);
    let queries = 0;
    inbox.stats = async () => {
      queries += 1;
      return stats();
    };
    const consoles = Array.from({ length: 20 }, (_, i) =>
      app.get(`/api/overview?minutes=${i % 2 ? 60 : 1440}`),
    );
    for (const { status } of await Promise.all(consoles)) expect(status).toBe(200);
    app.runtime.advance(999);
    await app.get('/api/overview');
    expect(queries).toBe(1);
    app.runtime.advance(1);
    await app.get('/api/overview');
    expect(queries).toBe(2);
    await app.post('pause', { handler: '*' });
    const { body } = await app.get('/api/overview');
    expect(body).toMatchObject({ stats: { paused: [{ handler: '*' }] } });
  });

  it('the console reads the closed minutes of a time range every 10 seconds, every five minutes if reads are slow, and one second after an error', async () => {
    await using app = await start();
    const inbox = app.merchant.app.get(PaymentInbox);
    const activity = inbox.activity.bind(inbox);
    const read: (number | undefined)[] = [];
    let failing = false;
    let slowMs = 0;
    inbox.activity = async (minutes) => {
      read.push(minutes);
      app.runtime.advance(slowMs);
      if (failing) throw new Error('the disk is full');
      return activity(minutes);
    };
    const poll = async (minutes: number) =>
      (await app.get(`/api/overview?minutes=${minutes}`)).status;
    for (let second = 0; second < 20; second += 1) {
      expect(await poll(1440)).toBe(200);
      app.runtime.advance(1000);
    }
    expect(read).toEqual([1440, 1440]);
    read.length = 0;
    for (const { tookMs, seconds } of [
      { tookMs: 100, seconds: 40 },
      { tookMs: 1000, seconds: 300 },
    ]) {
      slowMs = tookMs;
      app.runtime.advance(300_000);
      for (const [afterMs, reads] of [
        [0, [360]],
        [seconds * 1000 - tookMs - 1, [360]],
        [1, [360, 360]],
      ] as const) {
        app.runtime.advance(afterMs);
        expect(await poll(360)).toBe(200);
        expect(read).toEqual(reads);
      }
      read.length = 0;
    }
    slowMs = 0;
    failing = true;
    expect(await poll(60)).toBe(503);
    app.runtime.advance(999);
    expect(await poll(60)).toBe(503);
    expect(read).toEqual([60]);
    failing = false;
    app.runtime.advance(1);
    expect(await poll(60)).toBe(200);
  });

  it('the console lists, redrives and skips the deliveries of one group of failures only', async () => {
    await using app = await start({ providers: [Ledger] });
    await fail(app);
    const [ledger, account] = await groupsOf(app);
    const target = ({ handler, error }: { handler: string; error: string }) => ({
      filter: { state: 'dead', handler, error },
      handler,
    });
    const list = new URLSearchParams(target(ledger!).filter);
    const { body } = await app.get(`/api/events?${list}`);
    expect((body['events'] as { id: string }[]).map(({ id }) => id)).toEqual(['e-3', 'e-2', 'e-1']);
    const counted = await app.post('redrive', { ...target(ledger!), dryRun: true });
    expect(counted.body).toEqual({ events: 3, deliveries: 3 });
    expect((await app.post('skip', target(account!))).body).toEqual({ events: 1, deliveries: 1 });
    expect(await app.states('e-4')).toMatchObject({ 'Ledger.post': 'skipped' });
    expect(await app.states('e-1')).toMatchObject({ 'Ledger.post': 'dead' });
    const redriven = await app.post('redrive', { ...target(ledger!), ratePerSecond: 1000 });
    expect(redriven.body).toEqual({ events: 3, deliveries: 3 });
    expect(await app.states('e-4')).toMatchObject({ 'Ledger.post': 'skipped' });
    expect(app.actions.at(-1)).toContain('with the error "Error: HTTP 503 from ledger, request …"');
  });

  it('the console shows new failures at once after an action, although it caches the groups of failures for seconds', async () => {
    await using app = await start({ providers: [Ledger] });
    await fail(app);
    const [, account] = await groupsOf(app);
    await deliver(app, 'e-6', { fail: 'the disk is full' });
    expect(await groupsOf(app)).toHaveLength(2);
    await app.post('skip', { filter: { handler: 'Ledger.post', error: account!.error } });
    expect((await groupsOf(app)).map(({ error }) => error)).toEqual([
      expect.stringContaining('HTTP 503'),
      expect.stringContaining('the disk is full'),
    ]);
  });
});
