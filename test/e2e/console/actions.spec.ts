import { expect, it } from '@jest/globals';
import { PaymentInbox } from 'nestjs-payments';
import {
  consoleOnEachAdapter,
  Receipts,
  selected,
} from '../../support/console/console-application.js';
import { eventually } from '../../support/time/waiting.js';

consoleOnEachAdapter((start) => {
  it('the console redrives and skips the deliveries that match a filter; a filter without a state matches only dead deliveries', async () => {
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
      'log "ann": counted 2 deliveries in the state dead found by a search of 4 characters to skip PaymentsConsole',
      'log "ann": skipped 2 deliveries in the state dead found by a search of 4 characters PaymentsConsole',
      'log "ann": started to redrive 1 delivery of handler "Orders.markPaid" in the state dead at 5 per second PaymentsConsole',
    ]);
  });

  it('OP-03 the console starts a redrive by filter, lists the redrive with its operator and progress, and stops the redrive', async () => {
    await using app = await start();
    for (const id of ['e-1', 'e-2', 'e-3', 'e-4']) await app.deliver({ id }, 'dead');
    const total = { events: 4, deliveries: 4 };
    expect(await app.post('redrive', { filter: {}, ratePerSecond: 1 })).toMatchObject({
      status: 200,
      body: total,
    });
    const shown = async () => {
      app.runtime.advance(1000);
      return (await app.get('/api/redrives')).body['redrives'] as { id: string }[];
    };
    const job = { state: 'running', startedBy: 'ann', ratePerSecond: 1, total };
    const [{ id }] = await eventually(async () => {
      const jobs = await shown();
      expect(jobs).toMatchObject([{ ...job, events: 2 }]);
      return jobs as [{ id: string }];
    });
    expect(await app.post('stop', { id })).toMatchObject({ status: 200, body: {} });
    expect(await shown()).toMatchObject([{ ...job, state: 'stopped' }]);
    expect(await app.post('stop', { id })).toMatchObject({
      status: 409,
      body: { error: 'The redrive has already ended.' },
    });
    expect(await app.states('e-4')).toEqual({ 'Orders.markPaid': 'dead' });
    expect(app.actions.slice(-2)).toEqual([
      'log "ann": stopped the redrive of deliveries in the state dead at 1 per second PaymentsConsole',
      'warn "ann": could not stop the redrive of deliveries in the state dead at 1 per second. The redrive has already ended. PaymentsConsole',
    ]);
    await app.post('redrive', { filter: { state: 'unhandled' }, handler: 'Orders.markPaid' });
    expect(await app.post('stop', { id: (await shown())[0]!.id })).toMatchObject({ status: 409 });
    expect(app.actions.at(-1)).toContain(
      'could not stop the redrive of deliveries of handler "Orders.markPaid" in the state unhandled at 100 per second.',
    );
    expect(await app.post('stop', { id: 'job-1' })).toMatchObject({ status: 409 });
    expect(app.actions.at(-1)).toContain('could not stop redrive "job-1"');
    await eventually(async () => {
      app.runtime.advance(3_600_000);
      expect(await shown()).toEqual([]);
    });
  });

  it('the console redrives only the newest event that matches a filter', async () => {
    await using app = await start();
    for (const id of ['e-1', 'e-2', 'f-1']) await app.deliver({ id }, 'dead');
    await app.deliver({ id: 'e-3' });
    const redrive = { filter: { search: 'e-' }, newestOnly: true };
    const event = { company: 'default', id: 'e-2' };
    const one = { events: 1, deliveries: 1, event };
    expect((await app.post('redrive', redrive)).body).toEqual(one);
    await eventually(async () =>
      expect(await app.states('e-2')).toEqual({ 'Orders.markPaid': 'done' }),
    );
    for (const id of ['e-1', 'f-1']) {
      expect(await app.states(id)).toEqual({ 'Orders.markPaid': 'dead' });
    }
    expect((await app.get('/api/redrives')).body).toEqual({ redrives: [] });
    expect(app.actions.at(-1)).toContain(
      'redrove 1 delivery in the state dead found by a search of 2 characters of the newest event',
    );
    const none = { filter: { search: 'x' }, newestOnly: true };
    expect((await app.post('redrive', none)).body).toEqual({ events: 0, deliveries: 0 });
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

  it('the console rejects and logs a request to forget a handler that a running process has registered', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    const handler = 'Orders.markPaid';
    expect(await app.post('forget', { handler })).toMatchObject({
      status: 409,
      body: {
        error: expect.stringMatching(
          /A running process has registered the handler "Orders.markPaid"/,
        ),
      },
    });
    expect(await app.states('e-1')).toEqual({ [handler]: 'dead' });
    expect(app.actions).toEqual([
      expect.stringMatching(
        /^warn "ann": could not forget handler "Orders.markPaid". A running process has/,
      ),
    ]);
  });

  it('the console redrives pending, dead and skipped deliveries of selected events, and done deliveries only with force', async () => {
    await using app = await start();
    await app.deliver({ id: 'pending' }, 'pending');
    await app.deliver({ id: 'done' });
    await app.deliver({ id: 'dead' }, 'dead');
    await app.deliver({ id: 'skipped' }, 'dead');
    await app.post('skip', selected('skipped'));
    const all = selected('pending', 'done', 'dead', 'skipped', 'dead');
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
      for (const id of ['pending', 'dead', 'skipped']) {
        expect(await app.states(id)).toEqual({ 'Orders.markPaid': 'done' });
      }
    });
    expect((await app.post('redrive', { ...selected('done'), force: true })).body).toEqual({
      events: 1,
      deliveries: 1,
    });
    await eventually(() => {
      expect(app.orders.seen.filter((id) => id === 'done')).toHaveLength(2);
    });
  });

  it('the console runs each delivery of a selected event once, even if one delivery is done before the next delivery is redriven', async () => {
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
    expect((await app.post('redrive', { ...selected('e-1'), force: true })).body).toEqual({
      events: 1,
      deliveries: 2,
    });
    expect(app.orders.seen).toEqual(['e-1', 'e-1']);
  });

  it('the console runs an unhandled event with the handlers that were added after the receipt of the event', async () => {
    await using app = await start({ providers: [Receipts] });
    const inbox = app.merchant.app.get(PaymentInbox);
    await app.deliver({ id: 'e-1', eventType: 'nobody.knows' });
    expect((await app.post('redrive', selected('e-1'))).body).toEqual({ events: 0, deliveries: 0 });
    // An event that was received before the handler was added has no delivery.
    await app.deliver({ id: 'e-2', eventType: 'payout.settled' });
    const list = inbox.list.bind(inbox);
    inbox.list = async (query) => {
      const page = await list(query);
      return { ...page, events: page.events.map((event) => ({ ...event, deliveries: [] })) };
    };
    const queries: unknown[] = [];
    const redrive = inbox.redrive.bind(inbox);
    inbox.redrive = async (query) => {
      queries.push(query);
      return redrive(query);
    };
    const startRedrive = inbox.startRedrive.bind(inbox);
    inbox.startRedrive = async (query, options) => {
      queries.push(query);
      return startRedrive(query, options);
    };
    await app.post('redrive', selected('e-2'));
    await app.post('redrive', { ...selected('e-2'), handler: 'Receipts.send' });
    await app.post('redrive', { filter: { state: 'unhandled' } });
    await app.post('redrive', { filter: { state: 'unhandled' }, handler: 'Receipts.send' });
    const ids = { company: 'default', ids: ['e-2'] };
    expect(queries).toEqual([
      { ...ids, state: 'unhandled', handlers: ['Orders.markPaid', 'Receipts.send'], dryRun: false },
      { ...ids, state: 'unhandled', handlers: ['Receipts.send'], dryRun: false },
      { state: 'unhandled', force: false, handlers: ['Orders.markPaid', 'Receipts.send'] },
      { state: 'unhandled', force: false, handlers: ['Receipts.send'] },
    ]);
  });

  it('SE-09 the console lists stale events, and runs the existing handlers for selected or all stale events', async () => {
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
    expect((await app.post('redrive', selected('e-1'))).body).toEqual(one);
    expect((await app.post('redrive', { ...selected('e-2'), handler })).body).toEqual(one);
    const all = { filter: { state: 'stale' } };
    expect((await app.post('redrive', { ...all, dryRun: true })).body).toEqual(one);
    expect((await app.post('redrive', all)).body).toEqual(one);
    await eventually(() => expect(app.orders.seen.toSorted()).toEqual(['e-1', 'e-2', 'e-3']));
    expect((await app.get('/api/events?state=stale')).body['events']).toEqual([]);
  });

  it('the console adds a delivery for the given handler if a selected event has no delivery for it', async () => {
    await using app = await start({ providers: [Receipts] });
    await app.deliver({ id: 'e-1', eventType: 'payout.settled' });
    await app.deliver({ id: 'e-2' }, 'dead');
    expect(
      (await app.post('redrive', { ...selected('e-2'), handler: 'Receipts.send' })).body,
    ).toEqual({ events: 0, deliveries: 0 });
    const only = await app.post('redrive', {
      ...selected('e-1', 'e-2'),
      handler: 'Orders.markPaid',
    });
    expect(only.body).toEqual({ events: 1, deliveries: 1 });
    await eventually(async () =>
      expect(await app.states('e-2')).toEqual({
        'Orders.markPaid': 'done',
        'Receipts.send': 'done',
      }),
    );
  });

  it('the console redrives and skips stored deliveries for a handler of another process', async () => {
    await using app = await start();
    for (const id of ['evt-1', 'evt-2', 'evt-3']) await app.deliver({ id }, 'dead');
    app.merchant.app.get(PaymentInbox).handlers = async () => [];
    const handler = 'Orders.markPaid';
    const one = { events: 1, deliveries: 1 };
    expect((await app.post('redrive', { ...selected('evt-1'), handler })).body).toEqual(one);
    expect((await app.post('skip', { ...selected('evt-2'), handler })).body).toEqual(one);
    const filter = { search: 'evt-3' };
    expect((await app.post('redrive', { filter, handler })).body).toEqual(one);
    const nobody = { filter: { state: 'unhandled' } };
    expect((await app.post('redrive', nobody)).body).toEqual({ events: 0, deliveries: 0 });
  });
});
