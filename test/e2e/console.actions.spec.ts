import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent, PaymentInbox, sqliteInbox } from 'nestjs-payments';
import { consoleOnEachAdapter } from '../support/console.application.js';
import { eventually } from '../support/eventually.js';

const picked = (...ids: string[]) => ({ events: ids.map((id) => ({ company: 'default', id })) });

/** SQLite inboxes on one file of their own. */
async function sqliteFile() {
  const folder = await mkdtemp(join(tmpdir(), 'payments-console-'));
  return {
    inbox: () => sqliteInbox({ file: join(folder, 'inbox.db'), allowOldSqlite: true }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

@Injectable()
class Receipts {
  @OnPaymentEvent('transaction.completed', { name: 'Receipts.send' })
  send(): void {}
}

consoleOnEachAdapter((start) => {
  it('redrives the event that is picked, and logs who did it', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1', data: { name: 'Jane Roe' } }, 'dead');
    await app.deliver({ id: 'e-2' }, 'dead');
    const answer = await app.post('redrive', { ...picked('e-1'), force: false });
    expect(answer).toMatchObject({
      status: 200,
      body: { events: 1, deliveries: 1 },
      headers: { 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' },
    });
    await eventually(async () =>
      expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'done' }),
    );
    expect(await app.states('e-2')).toEqual({ 'Orders.markPaid': 'dead' });
    expect(app.orders.seen).toEqual(['e-1', 'e-2', 'e-1']);
    expect(app.actions).toEqual([
      'log "ann": redrive 1 selected events, deliveries: 1, events: 1 PaymentsConsole',
    ]);
    expect(app.log.join('\n')).not.toContain('Jane Roe');
  });

  it('redrives of selected events what waits, is dead or was skipped, and done ones only by force', async () => {
    await using app = await start();
    await app.deliver({ id: 'waits' }, 'pending');
    await app.deliver({ id: 'done' });
    await app.deliver({ id: 'dead' }, 'dead');
    await app.deliver({ id: 'skipped' }, 'dead');
    await app.post('skip', picked('skipped'));
    const all = picked('waits', 'done', 'dead', 'skipped', 'dead');
    expect((await app.post('redrive', { ...all, dryRun: true })).body).toEqual({
      events: 3,
      deliveries: 3,
    });
    expect((await app.post('redrive', { ...all, force: true, dryRun: true })).body).toEqual({
      events: 4,
      deliveries: 4,
    });
    expect(await app.states('skipped')).toEqual({ 'Orders.markPaid': 'skipped' });
    expect((await app.post('redrive', all)).body).toEqual({ events: 3, deliveries: 3 });
    await eventually(async () => {
      for (const id of ['waits', 'dead', 'skipped']) {
        expect(await app.states(id)).toEqual({ 'Orders.markPaid': 'done' });
      }
    });
    expect((await app.post('redrive', { ...picked('done'), force: true })).body).toEqual({
      events: 1,
      deliveries: 1,
    });
    await eventually(() => {
      expect(app.orders.seen.filter((id) => id === 'done')).toHaveLength(2);
    });
  });

  it('runs each delivery of a picked event once, though one is done before the next is asked for', async () => {
    await using app = await start({ providers: [Receipts] });
    await app.deliver({ id: 'e-1' }, 'dead');
    const inbox = app.merchant.app.get(PaymentInbox);
    const redrive = inbox.redrive.bind(inbox);
    inbox.redrive = async (query) => {
      const result = await redrive(query);
      await eventually(async () =>
        expect((await app.states('e-1'))['Orders.markPaid']).toBe('done'),
      );
      return result;
    };
    expect((await app.post('redrive', { ...picked('e-1'), force: true })).body).toEqual({
      events: 1,
      deliveries: 2,
    });
    expect(app.orders.seen).toEqual(['e-1', 'e-1']);
  });

  it('runs what nobody handled by the handlers there are now', async () => {
    await using app = await start({ providers: [Receipts] });
    const inbox = app.merchant.app.get(PaymentInbox);
    await app.deliver({ id: 'e-1', eventType: 'nobody.knows' });
    expect((await app.post('redrive', picked('e-1'))).body).toEqual({ events: 0, deliveries: 0 });
    // As an event of before the handler was added: no delivery to it.
    await app.deliver({ id: 'e-2', eventType: 'payout.settled' });
    const list = inbox.list.bind(inbox);
    inbox.list = async (query) => {
      const page = await list(query);
      return { ...page, events: page.events.map((event) => ({ ...event, deliveries: [] })) };
    };
    const asked: unknown[] = [];
    const redrive = inbox.redrive.bind(inbox);
    inbox.redrive = async (query) => {
      asked.push(query);
      return redrive(query);
    };
    await app.post('redrive', picked('e-2'));
    await app.post('redrive', { ...picked('e-2'), handler: 'Receipts.send' });
    await app.post('redrive', { filter: { state: 'unhandled' } });
    await app.post('redrive', { filter: { state: 'unhandled' }, handler: 'Receipts.send' });
    const ids = { company: 'default', ids: ['e-2'] };
    expect(asked).toEqual([
      { ...ids, state: 'unhandled', handlers: ['Orders.markPaid', 'Receipts.send'], dryRun: false },
      { ...ids, state: 'unhandled', handlers: ['Receipts.send'], dryRun: false },
      {
        state: 'unhandled',
        force: false,
        dryRun: false,
        handlers: ['Orders.markPaid', 'Receipts.send'],
      },
      { state: 'unhandled', force: false, dryRun: false, handlers: ['Receipts.send'] },
    ]);
  });

  it('SE-09 lists stale events and runs them by the handlers there are, picked or all', async () => {
    await using app = await start({ payments: { webhook: { maxAgeMs: 60_000 } } });
    const timestamp = new Date(app.runtime.now() - 120_000).toISOString();
    for (const id of ['e-1', 'e-2', 'e-3']) await app.deliver({ id, timestamp });
    const stale = await app.get('/api/events?state=stale');
    expect(stale.body['events']).toHaveLength(3);
    expect((await app.get('/api/overview')).body).toMatchObject({
      stats: { stale: { count: 3, more: false }, unhandled: { count: 0 } },
    });
    const handler = 'Orders.markPaid';
    const one = { events: 1, deliveries: 1 };
    expect((await app.post('redrive', picked('e-1'))).body).toEqual(one);
    expect((await app.post('redrive', { ...picked('e-2'), handler })).body).toEqual(one);
    const all = { filter: { state: 'stale' } };
    expect((await app.post('redrive', { ...all, dryRun: true })).body).toEqual(one);
    expect((await app.post('redrive', all)).body).toEqual(one);
    await eventually(() => expect(app.orders.seen.toSorted()).toEqual(['e-1', 'e-2', 'e-3']));
    expect((await app.get('/api/events?state=stale')).body['events']).toEqual([]);
  });

  it('adds a delivery to a handler that is named, where a picked event has none', async () => {
    await using app = await start({ providers: [Receipts] });
    await app.deliver({ id: 'e-1', eventType: 'payout.settled' });
    await app.deliver({ id: 'e-2' }, 'dead');
    expect(
      (await app.post('redrive', { ...picked('e-2'), handler: 'Receipts.send' })).body,
    ).toEqual({ events: 0, deliveries: 0 });
    const only = await app.post('redrive', { ...picked('e-1', 'e-2'), handler: 'Orders.markPaid' });
    expect(only.body).toEqual({ events: 1, deliveries: 1 });
    await eventually(async () =>
      expect(await app.states('e-2')).toEqual({
        'Orders.markPaid': 'done',
        'Receipts.send': 'done',
      }),
    );
  });

  it('redrives and skips what is stored for a handler that another process has', async () => {
    await using app = await start();
    for (const id of ['evt-1', 'evt-2', 'evt-3']) await app.deliver({ id }, 'dead');
    app.merchant.app.get(PaymentInbox).handlers = async () => [];
    const handler = 'Orders.markPaid';
    const one = { events: 1, deliveries: 1 };
    expect((await app.post('redrive', { ...picked('evt-1'), handler })).body).toEqual(one);
    expect((await app.post('skip', { ...picked('evt-2'), handler })).body).toEqual(one);
    const filter = { search: 'evt-3' };
    expect((await app.post('redrive', { filter, handler })).body).toEqual(one);
    const nobody = { filter: { state: 'unhandled' } };
    expect((await app.post('redrive', nobody)).body).toEqual({ events: 0, deliveries: 0 });
  });

  it('redrives and skips what matches a filter, dead ones unless it says otherwise', async () => {
    await using app = await start();
    for (const id of ['evt-1', 'evt-2', 'f-1']) await app.deliver({ id }, 'dead');
    await app.deliver({ id: 'evt-3' });
    const counted = await app.post('skip', { filter: { search: 'evt-' }, dryRun: true });
    expect(counted.body).toEqual({ events: 2, deliveries: 2 });
    expect((await app.post('skip', { filter: { search: 'evt-' } })).body).toEqual({
      events: 2,
      deliveries: 2,
    });
    const redrive = { handler: 'Orders.markPaid', ratePerSecond: 5, force: false };
    expect((await app.post('redrive', { filter: {}, ...redrive })).body).toEqual({
      events: 1,
      deliveries: 1,
    });
    expect((await app.post('redrive', { filter: { state: 'skipped' }, ...redrive })).body).toEqual({
      events: 2,
      deliveries: 2,
    });
    expect(app.actions.slice(0, 3)).toEqual([
      'log "ann": skip the filter {"search":"4 characters"}, counted only, deliveries: 2, events: 2 PaymentsConsole',
      'log "ann": skip the filter {"search":"4 characters"}, deliveries: 2, events: 2 PaymentsConsole',
      'log "ann": redrive the filter {}, handler "Orders.markPaid", 5 a second, deliveries: 1, events: 1 PaymentsConsole',
    ]);
  });

  it('skips of selected events what waits or is dead', async () => {
    await using app = await start();
    await app.deliver({ id: 'dead' }, 'dead');
    await app.deliver({ id: 'waits' }, 'pending');
    await app.deliver({ id: 'done' });
    const inbox = app.merchant.app.get(PaymentInbox);
    const skip = inbox.skip.bind(inbox);
    const states: unknown[] = [];
    inbox.skip = async (query) => {
      states.push(query.state);
      return skip(query);
    };
    const events = picked('dead', 'waits', 'done', 'unknown');
    expect((await app.post('skip', events)).body).toEqual({ events: 2, deliveries: 2 });
    expect(states).toEqual(['dead', 'pending']);
    expect(await app.states('done')).toEqual({ 'Orders.markPaid': 'done' });
  });

  it('refuses to forget a handler that a running process has, and logs that', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    const handler = 'Orders.markPaid';
    expect(await app.post('forget', { handler })).toMatchObject({
      status: 409,
      body: { error: expect.stringMatching(/A running process has the handler "Orders.markPaid"/) },
    });
    expect(await app.states('e-1')).toEqual({ [handler]: 'dead' });
    expect(app.actions).toEqual([
      expect.stringMatching(/^warn "ann": forget was refused or failed. A running process has/),
    ]);
  });

  it('forgets a handler that no running process has, skips its deliveries, and logs who did it', async () => {
    await using stage = await sqliteFile();
    const { inbox } = stage;
    const old = await start({ providers: [Receipts], payments: { inbox: inbox() } });
    await old.merchant.app.get(PaymentInbox).pause('Receipts.send');
    await old.deliver({ id: 'e-1' });
    await eventually(async () => expect((await old.states('e-1'))['Orders.markPaid']).toBe('done'));
    await old.merchant.app.close();
    await using app = await start({ payments: { inbox: inbox() } });
    const handler = 'Receipts.send';
    const names = async () => {
      const { handlers } = (await app.get('/api/overview')).body as { handlers: object[] };
      return handlers;
    };
    expect(await names()).toMatchObject([
      { name: 'Orders.markPaid', here: true },
      { name: handler, here: false, lastSeenAt: expect.any(String) },
    ]);
    expect(await app.post('forget', { handler })).toMatchObject({
      status: 200,
      body: { deliveries: 1 },
    });
    expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'done', [handler]: 'skipped' });
    expect(app.actions).toEqual([
      'log "ann": forget handler "Receipts.send", deliveries: 1 PaymentsConsole',
    ]);
    await app.post('resume', { handler });
    expect(await names()).toMatchObject([{ name: 'Orders.markPaid' }]);
  });

  it('pauses and resumes a handler, or all', async () => {
    await using app = await start();
    for (const handler of ['Orders.markPaid', '*']) {
      expect(await app.post('pause', { handler })).toMatchObject({ status: 200, text: '{}' });
      const paused = await app.get('/api/overview');
      expect(paused.body).toMatchObject({ stats: { paused: [handler] } });
      expect(await app.post('resume', { handler })).toMatchObject({ status: 200, text: '{}' });
      const resumed = await app.get('/api/overview');
      expect(resumed.body).toMatchObject({ stats: { paused: [] } });
    }
    expect(app.actions).toEqual([
      'log "ann": pause handler "Orders.markPaid" PaymentsConsole',
      'log "ann": resume handler "Orders.markPaid" PaymentsConsole',
      'log "ann": pause all handlers PaymentsConsole',
      'log "ann": resume all handlers PaymentsConsole',
    ]);
  });
});
