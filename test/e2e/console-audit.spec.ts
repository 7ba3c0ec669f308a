import { expect, it } from '@jest/globals';
import { consoleOnEachAdapter } from '../support/console/console-application.js';
import type { ConsoleApplication } from '../support/console/console-application.js';

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

  it('SE-13 the console logs one line per operator, event and minute for any number of requests', async () => {
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

  it('SE-13 the console logs the views of 1,050 operators', async () => {
    await using app = await start({ console: { who } });
    await app.deliver({ id: 'e-1' });
    for (let n = 0; n < 1050; n += 1) await app.get(at('e-1'), as(`operator ${n}`));
    expect(new Set(views(app)).size).toBe(1050);
    // Views above the first thousand are not remembered, so they are logged again.
    for (let n = 0; n < 1050; n += 1) await app.get(at('e-1'), as(`operator ${n}`));
    expect(views(app)).toHaveLength(1100);
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

  it('the console writes one line per view for names with any characters', async () => {
    await using app = await start({ console: { who: () => 'ann"\u2028: redrive\u202e' } });
    await app.deliver({ id: 'e\u2028"1' });
    await app.get(`/api/event?company=default&id=${encodeURIComponent('e\u2028"1')}`);
    expect(views(app)).toEqual([
      'log "ann\\" : redrive": viewed event "e \\"1" of company "default" PaymentsConsole',
    ]);
  });
});
