import { expect, it } from '@jest/globals';
import { ACTION, PATH, consoleOnEachAdapter } from '../support/console.application.js';

const DATA = ['/api/overview', '/api/events', '/api/event?company=default&id=e-1'];
const ACTIONS: [string, object][] = [
  ['redrive', { events: [{ company: 'default', id: 'e-1' }] }],
  ['skip', { filter: {} }],
  ['pause', { handler: '*' }],
  ['resume', { handler: '*' }],
  ['forget', { handler: 'Orders.markPaid' }],
];
const { 'content-type': _, ...withoutType } = ACTION;
const { 'x-payments-console': __, ...withoutMark } = ACTION;

/** What the console refuses of a page that is not its own, by what the browser says of it. */
const FOREIGN: [string, Record<string, string>, RegExp][] = [
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }, /another site/],
  ['a page of another subdomain', { 'sec-fetch-site': 'same-site' }, /another site/],
  ['a page that says what no browser says', { 'sec-fetch-site': 'SAME-ORIGIN' }, /another site/],
  ['a page of another host', { origin: 'https://evil.example' }, /another host.*Host header/],
  ['a page of another port', { origin: 'http://shop.example:8080' }, /another host/],
  [
    'a page of a host that begins alike',
    { origin: 'https://shop.example.evil.example' },
    /another host/,
  ],
  ['a page of nowhere', { origin: 'null' }, /another host/],
  ['a page of a file', { origin: 'file://' }, /another host/],
  ['an origin that is none', { origin: 'shop.example' }, /another host/],
  ['two origins', { origin: 'https://shop.example https://evil.example' }, /another host/],
];
const host = 'shop.example';

consoleOnEachAdapter((start) => {
  it.each(FOREIGN)('refuses data and actions to %s', async (_title, headers, why) => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    for (const path of DATA) {
      const answer = await app.get(path, { host, ...headers });
      expect(answer).toMatchObject({ status: 403, body: { error: expect.stringMatching(why) } });
      expect(answer.text).not.toMatch(/e-1|stats/);
    }
    for (const [action, body] of ACTIONS) {
      const answer = await app.post(action, body, { headers: { host, ...ACTION, ...headers } });
      expect(answer).toMatchObject({ status: 403, body: { error: expect.stringMatching(why) } });
    }
    expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'dead' });
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
    const told = app.log.filter((line) => /refused a request of another site/.test(line));
    expect(told).toHaveLength(1);
    expect(told[0]).not.toContain('evil');
  });

  it.each<[string, Record<string, string>]>([
    ['its own page', { 'sec-fetch-site': 'same-origin', origin: 'http://shop.example' }],
    ['its own page behind a proxy that ends TLS', { origin: 'https://shop.example' }],
    [
      'its own page, the default port spelt out',
      { origin: 'https://shop.example', host: 'shop.example:443' },
    ],
    ['its own page on a port', { origin: 'https://shop.example:8443', host: 'Shop.Example:8443' }],
    ['an address typed by hand', { 'sec-fetch-site': 'none' }],
    ['a program', {}],
  ])('serves %s', async (_title, headers) => {
    await using app = await start();
    const sent = { host, ...headers };
    expect(await app.get('/api/overview', sent)).toMatchObject({ status: 200 });
    const action = await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...sent } });
    expect(action).toMatchObject({ status: 200, body: {} });
  });

  it('does not take the word of a header that anybody can send', async () => {
    await using app = await start();
    const headers = { host, origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' };
    expect(await app.get('/api/overview', headers)).toMatchObject({ status: 403 });
  });

  it('may be linked to from anywhere, and framed nowhere', async () => {
    await using app = await start();
    const page = await app.get('', { host, 'sec-fetch-site': 'cross-site' });
    expect(page).toMatchObject({ status: 200, headers: { 'x-frame-options': 'DENY' } });
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
  });

  it.each<[string, Record<string, string>, number]>([
    ['without its header', withoutMark, 403],
    ['with its header otherwise', { ...ACTION, 'x-payments-console': 'true' }, 403],
    ['as a form', { ...ACTION, 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['as text', { ...ACTION, 'content-type': 'text/plain' }, 415],
    ['as what is almost JSON', { ...ACTION, 'content-type': 'application/jsonp' }, 415],
    ['without a content type', withoutType, 415],
  ])('refuses an action sent %s', async (_title, headers, status) => {
    await using app = await start();
    for (const [action, body] of ACTIONS) {
      expect(await app.post(action, body, { headers })).toMatchObject({ status });
    }
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
  });

  it('changes nothing by GET or HEAD, and knows no other methods', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' }, 'dead');
    for (const [action] of ACTIONS) {
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
        const path = `${PATH}/api/${action}?handler=*`;
        const { status } = await app.merchant.exchange(path, { method, headers: withoutType });
        expect([action, method, status]).toEqual([action, method, 404]);
      }
    }
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
    expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'dead' });
  });

  it('is not opened by an application that allows every origin', async () => {
    await using app = await start({
      main: (it) => it.enableCors({ origin: true, credentials: true, exposedHeaders: ['etag'] }),
    });
    const foreign = { host, origin: 'https://evil.example' };
    // The browser may ask; what it then sends is refused, and what it gets it may not show.
    const asked = await app.merchant.exchange(`${PATH}/api/pause`, {
      method: 'OPTIONS',
      headers: {
        ...foreign,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-payments-console',
      },
    });
    expect(asked.headers['access-control-allow-origin']).toBe('https://evil.example');
    const answers = [
      await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...foreign } }),
      await app.get('/api/overview', foreign),
      await app.get('/api/overview', { host, origin: 'https://shop.example' }),
      await app.get('', foreign),
      await app.get('/assets/console.js', foreign),
    ];
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 200, 200, 200]);
    for (const { headers } of answers) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
  });
});
