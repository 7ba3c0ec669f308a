import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PaymentInbox } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import {
  consoleOnEachAdapter,
  Receipts,
  selected,
} from '../../support/console/console-application.js';
import { eventually } from '../../support/time/waiting.js';

/** Creates SQLite inboxes on a new file. */
async function sqliteFile() {
  const folder = await mkdtemp(join(tmpdir(), 'payments-console-'));
  return {
    inbox: () => sqliteInbox({ file: join(folder, 'inbox.db'), allowOldSqlite: true }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

consoleOnEachAdapter((start) => {
  it('the console redrives and skips the deliveries that match a filter; without a state, the dead ones', async () => {
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
      'log "ann": redrive the filter {}, handler "Orders.markPaid", 5 per second, deliveries: 1, events: 1 PaymentsConsole',
    ]);
  });

  it('the console skips pending and dead deliveries of selected events', async () => {
    await using app = await start();
    await app.deliver({ id: 'dead' }, 'dead');
    await app.deliver({ id: 'pending' }, 'pending');
    await app.deliver({ id: 'done' });
    const inbox = app.merchant.app.get(PaymentInbox);
    const skip = inbox.skip.bind(inbox);
    const states: unknown[] = [];
    inbox.skip = async (query) => {
      states.push(query.state);
      return skip(query);
    };
    const events = selected('dead', 'pending', 'done', 'unknown');
    expect((await app.post('skip', events)).body).toEqual({ events: 2, deliveries: 2 });
    expect(states).toEqual(['dead', 'pending']);
    expect(await app.states('done')).toEqual({ 'Orders.markPaid': 'done' });
  });

  it('the console rejects and logs a request to forget a handler that a running process has', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    const handler = 'Orders.markPaid';
    expect(await app.post('forget', { handler })).toMatchObject({
      status: 409,
      body: { error: expect.stringMatching(/A running process has the handler "Orders.markPaid"/) },
    });
    expect(await app.states('e-1')).toEqual({ [handler]: 'dead' });
    expect(app.actions).toEqual([
      expect.stringMatching(
        /^warn "ann": forget handler "Orders.markPaid" was rejected or failed. A running process has/,
      ),
    ]);
  });

  it('the console forgets a handler that no running process has, skips its deliveries, and logs the operator', async () => {
    await using file = await sqliteFile();
    const { inbox } = file;
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

  it('the console pauses and resumes one handler, and all handlers', async () => {
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
