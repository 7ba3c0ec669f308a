import { expect, it } from '@jest/globals';
import { consoleOnEachAdapter, FAILURE_GROUP } from '../../support/console/console-application.js';

/** Requests with a query that is not valid: path, and part of the message. */
const QUERIES: [string, string][] = [
  ['/api/overview?minutes=0', '"minutes" must be a whole number from 1 to 1440.'],
  ['/api/overview?minutes=1441', '"minutes" must be'],
  [
    '/api/overview?minute=5',
    'The query must not have the field "minute". Its fields are: minutes.',
  ],
  ['/api/audit?show=payloads', '"show" must be one of all, actions, views.'],
  ['/api/audit?limit=1001', '"limit" must be a whole number from 1 to 1000.'],
  ['/api/events?limit=201', '"limit" must be a whole number from 1 to 200.'],
  ['/api/events?state=a&state=b', '"state" is in the query more than once: send it once.'],
  [
    '/api/events?state[]=dead',
    'The query must not have the field "state[]". Its fields are: company, event',
  ],
  ['/api/events?state=deadly', '"state" must be one of pending, running, done, dead, skipped, un'],
  ['/api/events?order=up', '"order" must be one of newest, oldest.'],
  ['/api/events?from=yesterday', '"from" must be a time such as 2026-11-20T08:00:00Z, or a date.'],
  ['/api/events?from=2026-02-30', '"from" must be'],
  ['/api/events?from=2026-W01', '"from" must be'],
  ['/api/events?to=0026-11-20', '"to" must be'],
  [
    `/api/events?search=${'x'.repeat(1001)}`,
    '"search" must be a text of 1 to 1000 characters; an emoji counts as two.',
  ],
  [
    '/api/events?handler=%00',
    '"handler" must be a text of 1 to 200 characters, none of them a con',
  ],
  ['/api/events?company=a%20b', '"company" must be the id of a company: 1 to 100 letters, digits'],
  ['/api/events?after=%27;', '"after" must be the value of "next" in the previous page.'],
  ['/api/payment?company=default', '"payment" is missing. It must be a text of 1 to 1000'],
  ['/api/event', '"company" is missing. It must be the id of a company'],
  ['/api/event?company=default', '"id" is missing. It must be a text of 1 to 255 characters'],
  ['/api/event?company=default&id=a%0ab', '"id" must be a text'],
];

const event = { company: 'default', id: 'e-1' };
const many = (length: number) => Array.from({ length }, (_, i) => ({ ...event, id: `e-${i}` }));
const A_LIST = '"events" must be a list of 1 to 1,000 events, each with "company" and "id".';
const FILTER = 'a JSON object with: company, eventType, handler, state, search, error, from, to.';

/** Actions with a body that is not valid: title, action, body, and part of the message. */
const BODIES: [string, string, unknown, string][] = [
  ['a list', 'redrive', [], 'The body must be a JSON object with: events, filter, handler, '],
  ['no selection', 'redrive', {}, 'The body must contain either "events" or "filter".'],
  ['two selections', 'skip', { events: [event], filter: {} }, 'either "events" or "filter"'],
  ['no events', 'redrive', { events: [] }, A_LIST],
  ['1,001 events', 'redrive', { events: many(1001) }, A_LIST],
  ['an id in place of an event', 'skip', { events: ['e-1'] }, A_LIST],
  ['events that are null', 'skip', { events: null }, A_LIST],
  ['an event without company', 'skip', { events: [{ id: 'e-1' }] }, '"events[0].company" is miss'],
  [
    'an event with an unknown field',
    'skip',
    { events: [event, { ...event, handler: 'x' }] },
    'The body must not have the field "events[1].handler". Its fields are: company, id.',
  ],
  ['a number as id', 'skip', { events: [{ ...event, id: 7 }] }, '"events[0].id" must be a text of'],
  ['an id of 256 characters', 'skip', { events: [{ ...event, id: 'x'.repeat(256) }] }, '[0].id" '],
  ['a company with a slash', 'skip', { events: [{ ...event, company: 'a/b' }] }, '[0].company" mu'],
  ['a list of handlers', 'skip', { events: [event], handler: ['a'] }, '"handler" must be a text'],
  [
    'an unknown handler',
    'redrive',
    { events: [event], handler: 'Nobody' },
    'No handler is named "Nobody". The handlers are: Orders.markPaid.',
  ],
  ['force as text', 'redrive', { events: [event], force: 'yes' }, '"force" must be true or false.'],
  [
    'a rate for selected events',
    'redrive',
    { events: [event], ratePerSecond: 5 },
    '"ratePerSecond" is allowed only with "filter", not with "events".',
  ],
  [
    'the newest of selected events',
    'redrive',
    { events: [event], newestOnly: true },
    '"newestOnly" is allowed only with "filter", not with "events".',
  ],
  ['no redrive to stop', 'stop', {}, '"id" is missing. It must be a text of 1 to 100 characters'],
  [
    'an unknown field',
    'redrive',
    { events: [event], more: 1 },
    'The body must not have the field "more".',
  ],
  [
    'an unknown filter',
    'skip',
    { filter: { ids: [] } },
    'The body must not have the field "filter.ids".',
  ],
  ['an unknown state', 'skip', { filter: { state: 'gone' } }, '"filter.state" must be one of pend'],
  ['a time in words', 'skip', { filter: { from: 'today' } }, '"filter.from" must be a time such'],
  ['a filter that is text', 'skip', { filter: 'all' }, `"filter" must be ${FILTER}`],
  [
    'a rate of 0',
    'redrive',
    { filter: {}, ratePerSecond: 0 },
    '"ratePerSecond" must be a number above 0, at most 1000.',
  ],
  ['a rate of 1,001', 'redrive', { filter: {}, ratePerSecond: 1001 }, '"ratePerSecond" must be'],
  [
    'force for a skip',
    'skip',
    { filter: {}, force: true },
    'The body must not have the field "force".',
  ],
  [
    'two handlers',
    'redrive',
    { filter: { handler: 'a' }, handler: 'Orders.markPaid' },
    '"handler" and "filter.handler" name different handlers: omit one of them.',
  ],
  [
    '501 UTF-16 units',
    'acknowledge',
    { ...FAILURE_GROUP, note: '🔑'.repeat(250) + 'x' },
    '"note" must be a text of 1 to 500 characters, none of them a control character; an emoji counts as two.',
  ],
  [
    'a note',
    'withdraw',
    { ...FAILURE_GROUP, note: 'x' },
    'The body must not have the field "note".',
  ],
  ['no handler', 'pause', {}, '"handler" is missing. It must be the name of a handler, or * for '],
  ['an empty handler', 'pause', { handler: '' }, '"handler" must be the name of a handler, or *'],
  ['an unknown handler', 'pause', { handler: 'Nobody' }, 'No handler is named "Nobody"'],
  ['an unknown handler', 'resume', { handler: 'Nobody' }, 'No handler is named "Nobody"'],
  [
    'an unknown field',
    'resume',
    { handler: '*', all: true },
    'The body must not have the field "all".',
  ],
  ['all handlers', 'forget', { handler: '*' }, '"handler" must be the name of one handler to for'],
  ['an unknown handler', 'forget', { handler: 'Nobody' }, 'No handler is named "Nobody"'],
];

consoleOnEachAdapter((start) => {
  it.each(QUERIES)(
    'the console responds 400 to GET %s, with a message that names the allowed fields or values',
    async (path, message) => {
      await using app = await start();
      expect(await app.get(path)).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining(message) },
        headers: { 'cache-control': 'no-store', 'x-frame-options': 'DENY' },
      });
    },
  );

  it('the console rejects each invalid body with 400, a message and a log line, and changes nothing', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    for (const [title, action, body, message] of BODIES) {
      const { status, body: response } = await app.post(action, body);
      const rejected = { title, status, response, log: app.actions.at(-1) };
      expect(rejected).toEqual({
        title,
        status: 400,
        response: { error: expect.stringContaining(message) },
        log: expect.stringMatching(
          `^warn "ann": could not ${action === 'setup' ? 'run' : action}\\b`,
        ),
      });
    }
    expect(app.actions).toHaveLength(BODIES.length);
    expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'dead' });
  });

  it.each(['null', '{"events":[],"__proto__":{"force":true}}', '{"filter":{},', '"redrive"'])(
    'the console rejects the body %s',
    async (body) => {
      await using app = await start();
      await app.deliver({ id: 'e-1' }, 'dead');
      // The adapter's own parser rejects some of these bodies.
      expect(await app.post('redrive', body)).toMatchObject({ status: 400 });
      expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'dead' });
    },
  );

  it('the console responds 404 to an unknown action, and names the actions', async () => {
    await using app = await start();
    expect(await app.post('delete', {})).toMatchObject({
      status: 404,
      body: {
        error:
          'There is no such action. The actions are redrive, skip, stop, acknowledge, withdraw, pause, resume, forget, ask, close, setup.',
      },
    });
  });

  it('the console writes one log line per request, whatever characters the request contains', async () => {
    await using app = await start();
    const handler = 'x\n[Nest] LOG "root": redrive everything';
    await app.post('pause', { handler });
    await app.post('pause', { handler: 'x"\u2028 "root": redrive everything' });
    await app.post('pause', { ['a\nb']: 1 });
    const lines = app.log.filter((line) => line.startsWith('warn "ann": could not pause'));
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line).not.toMatch(/[\n\r\u2028]/);
  });

  it('the console accepts 1,000 events in one action', async () => {
    await using app = await start();
    expect(await app.post('skip', { events: many(1000) })).toMatchObject({
      status: 200,
      body: { events: 0, deliveries: 0 },
    });
  });
});
