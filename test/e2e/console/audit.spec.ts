import { describe, expect, it } from '@jest/globals';
import type { CanActivate } from '@nestjs/common';
import { PaymentInbox } from 'nestjs-payments';
import {
  ACTION,
  ConsoleApplication,
  consoleOnEachAdapter,
  selected,
} from '../../support/console/console-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';

const views = (app: ConsoleApplication): string[] =>
  app.log.filter((line) => line.includes('viewed event'));
const who = ({ headers }: { headers: object }) =>
  (headers as Record<string, string | undefined>)['x-sso-user'];
const as = (name: string) => ({ 'x-sso-user': name });
const at = (id: string): string => `/api/event?company=default&id=${id}`;

consoleOnEachAdapter((start) => {
  it('SE-13 the console logs which operator viewed which payload, without the payload', async () => {
    await using app = await start({ console: { who } });
    await app.deliver({ id: 'e-1', data: { card: 'a-customer' } });
    expect((await app.get(at('e-1'), as('ann'))).text).toContain('a-customer');
    expect(views(app)).toEqual([
      'log "ann": viewed event "e-1" of company "default" PaymentsConsole',
    ]);
    await app.get(at('e-1'));
    expect(views(app)[1]).toBe(
      'log "unknown": viewed event "e-1" of company "default" PaymentsConsole',
    );
    expect(app.log.join('\n')).not.toContain('a-customer');
  });

  it('SE-13 the console logs one line per operator, event and minute, for any number of requests', async () => {
    await using app = await start({ console: { who } });
    await app.deliver({ id: 'e-1' });
    await app.deliver({ id: 'e-2' });
    for (let minute = 1; minute <= 2; minute += 1) {
      for (let poll = 0; poll < 30; poll += 1) {
        for (const name of ['ann', 'bob']) await app.get(at('e-1'), as(name));
        await app.get(at('e-2'), as('ann'));
        app.runtime.advance(2000);
      }
      expect(views(app)).toHaveLength(3 * minute);
    }
  });

  it('the console logs no view of an event that does not exist, and shows no event if "who" throws', async () => {
    let failing = false;
    await using app = await start({
      console: {
        who: (request) => {
          if (failing) throw new Error('no session');
          return who(request);
        },
      },
    });
    await app.deliver({ id: 'e-1', data: { card: 'a-customer' } });
    expect(await app.get(at('e-2'))).toMatchObject({ status: 404 });
    expect(await app.get(at('e-1'), { 'sec-fetch-site': 'cross-site' })).toMatchObject({
      status: 403,
    });
    await app.get('/api/events');
    failing = true;
    const response = await app.get(at('e-1'));
    expect(response.status).toBe(500);
    expect(response.text).not.toContain('a-customer');
    expect(views(app)).toEqual([]);
  });

  it('the console writes one log line per view of a payload, whatever characters the name of the operator and the id of the event contain', async () => {
    await using app = await start({ console: { who: () => 'ann"\u2028: redrive\u202e' } });
    await app.deliver({ id: 'e\u2028"1' });
    await app.get(`/api/event?company=default&id=${encodeURIComponent('e\u2028"1')}`);
    expect(views(app)).toEqual([
      'log "ann\\" : redrive": viewed event "e \\"1" of company "default" PaymentsConsole',
    ]);
  });

  it('OP-43 the audit of the console contains each action and view in words, with operator, time and error', async () => {
    await using app = await start({ console: { who } });
    const since = new Date(app.runtime.now()).toISOString();
    const post = (action: string, body: object, name: string) =>
      app.post(action, body, { headers: { ...ACTION, ...as(name) } });
    await app.deliver({ id: 'e-1', data: { card: 'a-customer' } }, 'dead');
    await app.get(at('e-1'), as('ann'));
    app.runtime.advance(1000);
    await post('redrive', { ...selected('e-1'), dryRun: true }, 'ann');
    await post('redrive', selected('e-1'), 'ann');
    const until = '2026-12-01T08:00:00.000Z';
    await post('pause', { handler: 'Orders.markPaid', reason: 'ledger moves', until }, 'bob');
    await post('pause', { handler: 'Orders.markPayed' }, 'bob');
    await post('skip', { filter: { search: 'a-customer' }, handler: 'x', force: 1 }, 'bob');
    const { body, text } = await app.get('/api/audit');
    const now = new Date(app.runtime.now()).toISOString();
    const entry = { id: expect.any(String), at: now, event: null, outcome: 'done', error: null };
    const failed = { ...entry, who: 'bob', outcome: 'failed' };
    expect(body['entries']).toEqual([
      { ...failed, text: 'could not skip deliveries', error: expect.any(String) },
      {
        ...failed,
        text: 'could not pause handler "Orders.markPayed"',
        error: expect.stringContaining('No handler is named "Orders.markPayed"'),
      },
      {
        ...entry,
        who: 'bob',
        text: `paused handler "Orders.markPaid" until ${until}: ledger moves`,
      },
      { ...entry, who: 'ann', text: 'redrove 1 delivery of event "e-1"' },
      {
        ...entry,
        at: since,
        who: 'ann',
        text: 'viewed event "e-1" of company "default"',
        event: { company: 'default', id: 'e-1' },
      },
    ]);
    expect(text).not.toContain('a-customer');
    const textsOf = async (query: string) => {
      const response = await app.get(`/api/audit?${query}`);
      return (response.body['entries'] as { text: string }[]).map(({ text }) => text.slice(0, 12));
    };
    expect(await textsOf('show=views')).toEqual(['viewed event']);
    expect(await textsOf('show=actions&limit=2')).toEqual(['could not sk', 'could not pa']);
    expect(await textsOf('who=Ann')).toEqual(['redrove 1 de', 'viewed event']);
    expect(await textsOf(`who=ann&from=${now}`)).toEqual(['redrove 1 de']);
    expect(await textsOf(`to=${now}`)).toEqual(['viewed event']);
    expect(await textsOf('who=unknown')).toEqual([]);
  });

  it('OP-43 a filter of the audit compares the newest 1,000 entries, and the response names the time of the oldest of these entries', async () => {
    await using app = await start({ console: { who } });
    const inbox = app.merchant.app.get(PaymentInbox);
    const entry = { text: 'did it', event: null, outcome: 'done', error: null } as const;
    for (const count of [1, 999]) {
      for (let n = 0; n < count; n += 1) await inbox.recordAudit({ ...entry, who: 'ann' });
      const { body } = await app.get('/api/audit?who=ann&limit=1');
      expect(body['entries']).toHaveLength(1);
      const oldest = new Date(app.runtime.now()).toISOString();
      expect(body['comparedFrom']).toBe(count === 1 ? null : oldest);
      expect((await app.get('/api/audit?limit=1')).body['comparedFrom']).toBeNull();
    }
  });

  it('OP-43 the audit of the console contains an action before the action is performed', async () => {
    await using app = await start({ console: { who } });
    const inbox = app.merchant.app.get(PaymentInbox);
    const entries = async () => (await app.get('/api/audit')).body['entries'];
    const pause = inbox.pause.bind(inbox);
    let during: unknown;
    inbox.pause = async (...args) => {
      during = await entries();
      await pause(...args);
    };
    await app.post('pause', { handler: '*' });
    const entry = { outcome: 'unknown', error: null };
    expect(during).toMatchObject([{ ...entry, text: 'pause all handlers' }]);
    expect(await entries()).toMatchObject([{ text: 'paused all handlers', outcome: 'done' }]);
  });

  it('OP-43 the audit of the console describes a selection in words, without ids in errors and without the text of a search', async () => {
    await using app = await start({ console: { who } });
    const error = 'no account ACC98765 for order 83a1f00c (HTTP 404)';
    const filter = {
      eventType: 'a.b',
      company: 'acme',
      from: '2026-11-19',
      error,
      state: 'pending',
    };
    const handler = 'Orders.markPaid';
    await app.post('skip', { filter, handler });
    await app.post('redrive', { filter: { search: 'Jane Roe' }, force: true, ratePerSecond: 5 });
    const ids = Array.from({ length: 12 }, (_, n) => `e-${n}`);
    await app.post('skip', selected(...ids));
    await app.post('skip', { events: [{ company: 'acme', id: 'e-1' }] });
    await app.post('skip', selected(...ids.map((id) => id + 'é'.repeat(250))));
    const { body } = await app.get('/api/audit');
    const texts = (body['entries'] as { text: string }[]).map(({ text }) => text).toReversed();
    expect(texts.slice(0, 4)).toEqual([
      'skipped 0 deliveries of handler "Orders.markPaid" with the error "no account … for order … (HTTP 404)" ' +
        'in the state pending of type "a.b" of company "acme" received since 2026-11-19',
      'started to redrive 0 deliveries found by a search of 8 characters including done ones at 5 per second',
      'skipped 0 deliveries of 12 events: "e-0", "e-1", "e-2", "e-3", "e-4" and 7 more',
      'skipped 0 deliveries of event "e-1" of company "acme"',
    ]);
    expect(texts[4]).toHaveLength(1002);
    expect(app.log.join()).not.toMatch(/ACC98765|83a1f00c|Jane Roe/);
  });

  it.each<[string, unknown, string | null]>([
    ['a username', { sub: 7, username: 'ann' }, 'ann'],
    ['an e-mail address', { id: 1, email: 'ann@shop.example' }, 'ann@shop.example'],
    ['a subject', { sub: 'auth0|1', name: 'Ann' }, 'auth0|1'],
    ['a number', { id: 42 }, '42'],
    ['a name', { username: ' ', name: 'Ann' }, 'Ann'],
    ['a text', 'ann', 'ann'],
    ['an undefined user', undefined, null],
    ['unknown claims', { roles: ['ops'] }, null],
    ['an object for a name', { username: { first: 'Ann' } }, null],
    [
      'line ends',
      { username: 'ann\n[Nest] LOG "root"\u2028\u202e\u0007x' },
      'ann [Nest] LOG "root" x',
    ],
    ['a long name', { username: '🔑'.repeat(500) }, '🔑'.repeat(100)],
  ])('the console reads the name of the operator from %s', async (_, user, who) => {
    const guard: CanActivate = {
      canActivate: (context) => {
        context.switchToHttp().getRequest<{ user?: unknown }>().user = user;
        return true;
      },
    };
    await using app = await start({ console: { guards: [guard] } });
    expect((await app.get('/api/overview')).body['who']).toBe(who);
    await app.post('pause', { handler: '*' });
    const line = `log ${JSON.stringify(who ?? 'unknown')}: paused all handlers PaymentsConsole`;
    expect(app.log).toContain(line);
  });

  it('the console awaits the promise of "who", and performs no action if the promise rejects', async () => {
    let session: Promise<string | undefined> = Promise.resolve('ann');
    await using app = await start({ console: { who: () => session } });
    expect((await app.get('/api/overview')).body).toMatchObject({ who: 'ann' });
    await app.post('pause', { handler: '*' });
    expect(app.log).toContain('log "ann": paused all handlers PaymentsConsole');
    session = Promise.resolve(undefined);
    await app.post('pause', { handler: '*' });
    expect(app.log).toContain('log "unknown": paused all handlers PaymentsConsole');
    session = Promise.reject(new Error('no session of 10.0.0.7'));
    const response = await app.post('resume', { handler: '*' });
    expect(response.status).toBe(500);
    expect(response.text).not.toContain('10.0.0.7');
    session = Promise.resolve('ann');
    expect((await app.get('/api/overview')).body).toMatchObject({
      stats: { paused: [{ handler: '*' }] },
    });
  });
});

describe('the audit trail of the console', () => {
  it('the console accepts a text of 250 emoji as a note and as a reason', async () => {
    await using app = await ConsoleApplication.start({ console: { who } });
    const group = { handler: 'x', state: 'dead', error: 'no', count: 1 };
    const note = '🔑'.repeat(250);
    const body = { ...group, newestAt: '2026-01-01T00:00:00Z', note };
    expect(await app.post('acknowledge', body)).toMatchObject({ status: 200 });
    expect(await app.post('pause', { handler: '*', reason: note })).toMatchObject({ status: 200 });
  });

  it('SE-13 the console logs the views of 1,050 operators', async () => {
    await using app = await ConsoleApplication.start({ console: { who } });
    await app.deliver({ id: 'e-1' });
    for (let n = 0; n < 1050; n += 1) await app.get(at('e-1'), as(`operator ${n}`));
    expect(new Set(views(app)).size).toBe(1050);
    // Views above the first thousand are not remembered, so they are logged again.
    for (const n of [0, 999, 1000, 1049]) await app.get(at('e-1'), as(`operator ${n}`));
    expect(views(app)).toHaveLength(1052);
  });
});

onEachDurableInbox((durable) => {
  it('OP-43 the audit of the console has the entries of all processes, also after a restart', async () => {
    const data = await durable.data();
    const start = () =>
      ConsoleApplication.start({ console: { who }, payments: { inbox: data.inbox() } });
    const texts = async (app: ConsoleApplication) => {
      const { body } = await app.get('/api/audit');
      return (body['entries'] as { text: string }[]).map(({ text }) => text);
    };
    {
      await using a = await start();
      await using b = await start();
      await a.deliver({ id: 'e-1' });
      await b.get(at('e-1'));
      await a.post('pause', { handler: '*' });
      expect(await texts(b)).toEqual(await texts(a));
    }
    await using restarted = await start();
    await restarted.post('resume', { handler: '*' });
    expect((await texts(restarted)).toSorted()).toEqual([
      'paused all handlers',
      'resumed all handlers',
      'viewed event "e-1" of company "default"',
    ]);
  });
});
