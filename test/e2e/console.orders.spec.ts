import { expect, it } from '@jest/globals';
import { consoleOnEachAdapter } from '../support/console.application.js';

consoleOnEachAdapter((start) => {
  const event = { company: 'default', id: 'e-1' };
  const many = (length: number) => Array.from({ length }, (_, i) => ({ ...event, id: `e-${i}` }));
  it.each<[string, unknown, RegExp]>([
    ['redrive', [], /The body must be a JSON object with: events, filter/],
    ['redrive', 'null', /The body must be a JSON object|JSON/],
    ['redrive', {}, /either "events" or "filter"/],
    ['redrive', { events: [event], filter: {} }, /either "events" or "filter"/],
    ['redrive', { events: [] }, /"events" must be a list of 1 to 1,000/],
    ['redrive', { events: many(1001) }, /"events" must be a list of 1 to 1,000/],
    ['redrive', { events: event }, /"events" must be a list/],
    ['redrive', { events: ['e-1'] }, /"events\[0\]" must be a JSON object with: company, id/],
    ['redrive', { events: [{ id: 'e-1' }] }, /"events\[0\]" needs "company" and "id"/],
    ['redrive', { events: [{ ...event, handler: 'x' }] }, /no "events\[0\].handler"/],
    ['redrive', { events: [{ ...event, id: 7 }] }, /"events\[0\].id" must be a text/],
    ['redrive', { events: [{ ...event, id: 'x'.repeat(256) }] }, /"events\[0\].id"/],
    ['redrive', { events: [{ ...event, company: 'a/b' }] }, /"events\[0\].company"/],
    ['redrive', { events: [event], handler: ['Orders.markPaid'] }, /"handler" must be a text/],
    [
      'redrive',
      { events: [event], handler: 'Nobody' },
      /No handler is named "Nobody". There are: Orders.markPaid/,
    ],
    ['redrive', { events: [event], force: 'yes' }, /"force" must be true or false/],
    ['redrive', { events: [event], dryRun: 0 }, /"dryRun" must be true or false/],
    ['redrive', { events: [event], ratePerSecond: 5 }, /"ratePerSecond" goes with "filter"/],
    ['redrive', { events: [event], more: 1 }, /There is no "more" in the body/],
    ['redrive', '{"events":[],"__proto__":{"force":true}}', /__proto__|"events" must/],
    ['redrive', { filter: { ids: ['e-1'] } }, /There is no "filter.ids"/],
    ['redrive', { filter: { state: 'gone' } }, /"filter.state" must be one of/],
    ['redrive', { filter: { from: 'today' } }, /"filter.from" must be a time/],
    ['redrive', { filter: { search: '' } }, /"filter.search" must be a text/],
    ['redrive', { filter: 'all' }, /"filter" must be a JSON object/],
    ['redrive', { filter: {}, ratePerSecond: 0 }, /"ratePerSecond" must be a number above 0/],
    ['redrive', { filter: {}, ratePerSecond: '5' }, /"ratePerSecond"/],
    ['redrive', { filter: {}, ratePerSecond: 1001 }, /"ratePerSecond"/],
    ['skip', { filter: {}, force: true }, /There is no "force" in the body/],
    ['skip', { filter: { handler: 'a' }, handler: 'Orders.markPaid' }, /name two handlers/],
    ['redrive', { filter: { handler: 'a' }, handler: 'Orders.markPaid' }, /name two handlers/],
    ['pause', {}, /"handler" must be the name of a handler, or \* for all/],
    ['pause', { handler: '' }, /"handler" must be a text/],
    ['pause', { handler: 'Nobody' }, /No handler is named "Nobody"/],
    ['resume', { handler: 'Nobody' }, /No handler is named "Nobody"/],
    ['resume', { handler: '*', all: true }, /There is no "all"/],
    ['forget', { handler: '*' }, /the name of one handler to forget/],
    ['forget', { handler: 'Nobody' }, /No handler is named "Nobody"/],
    ['forget', { handler: 'Orders.markPaid', dryRun: true }, /There is no "dryRun"/],
  ])('refuses to %s %j, and logs that', async (action, body, message) => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    const answer = await app.post(action, body);
    expect(answer.status).toBe(400);
    // What is no JSON value of the adapter's own is refused by its parser.
    if (answer.body['error'] !== undefined && body !== 'null') {
      expect(answer.body['error']).toMatch(message);
    }
    expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'dead' });
    if (typeof body !== 'string') {
      expect(app.actions).toEqual([
        expect.stringMatching(new RegExp(`^warn "ann": ${action} was refused or failed. `)),
      ]);
    }
  });

  it('forges no line of the log, whatever it is sent', async () => {
    await using app = await start();
    const handler = 'x\n[Nest] LOG "root": redrive everything';
    await app.post('pause', { handler });
    await app.post('pause', { handler: 'x"\u2028 "root": redrive everything' });
    await app.post('pause', { ['a\nb']: 1 });
    const lines = app.log.filter((line) => line.startsWith('warn "ann": pause was refused'));
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line).not.toMatch(/[\n\r\u2028]/);
  });

  it('takes a thousand events at once', async () => {
    await using app = await start();
    expect(await app.post('skip', { events: many(1000) })).toMatchObject({
      status: 200,
      body: { events: 0, deliveries: 0 },
    });
  });
});
