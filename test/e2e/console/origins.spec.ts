import { afterEach, expect, it } from '@jest/globals';
import { ACTION, PATH, consoleOnEachAdapter } from '../../support/console/console-application.js';

const DATA = ['/api/overview', '/api/events', '/api/event?company=default&id=e-1'];
const ACTIONS: [string, object][] = [
  ['redrive', { events: [{ company: 'default', id: 'e-1' }] }],
  ['skip', { filter: {} }],
  ['pause', { handler: '*' }],
  ['resume', { handler: '*' }],
  ['forget', { handler: 'Orders.markPaid' }],
];
const { 'content-type': _, ...withoutType } = ACTION;
const { 'x-payments-console': __, ...withoutHeader } = ACTION;

/** Headers that browsers send for pages of other origins, and part of the message. */
const FOREIGN: [string, Record<string, string>, RegExp][] = [
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }, /another site/],
  [
    'a page with a value that no browser sends',
    { 'sec-fetch-site': 'SAME-ORIGIN' },
    /another site/,
  ],
  [
    'a page of another host',
    { origin: 'https://evil.example' },
    /differs from the host of the request.*Host header/,
  ],
  [
    'a page of another port',
    { origin: 'http://shop.example:8080' },
    /differs from the host of the request/,
  ],
  [
    'a page of a host with the same beginning',
    { origin: 'https://shop.example.evil.example' },
    /differs from the host of the request/,
  ],
  ['a page with the origin "null"', { origin: 'null' }, /differs from the host of the request/],
  [
    'a page with an origin that is not valid',
    { origin: 'shop.example' },
    /differs from the host of the request/,
  ],
];
const host = 'shop.example';

consoleOnEachAdapter((start) => {
  it.each(FOREIGN)(
    'the console rejects requests for data and actions from %s',
    async (_title, headers, message) => {
      await using app = await start();
      await app.deliver({ id: 'e-1' }, 'dead');
      for (const path of DATA) {
        const response = await app.get(path, { host, ...headers });
        expect(response).toMatchObject({
          status: 403,
          body: { error: expect.stringMatching(message) },
        });
        expect(response.text).not.toMatch(/e-1|stats/);
      }
      for (const [action, body] of ACTIONS) {
        const response = await app.post(action, body, { headers: { host, ...ACTION, ...headers } });
        expect(response).toMatchObject({
          status: 403,
          body: { error: expect.stringMatching(message) },
        });
      }
      expect(await app.states('e-1')).toEqual({ 'Orders.markPaid': 'dead' });
      expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
      const lines = app.log.filter((line) => /rejected a request from another site/.test(line));
      expect(lines).toHaveLength(1);
      expect(lines[0]).not.toContain('evil');
    },
  );

  it.each<[string, Record<string, string>]>([
    ['the page of the console', { 'sec-fetch-site': 'same-origin', origin: 'http://shop.example' }],
    ['the page of the console behind a proxy that ends TLS', { origin: 'https://shop.example' }],
    [
      'the page of the console, with the default port in Host',
      { origin: 'https://shop.example', host: 'shop.example:443' },
    ],
    [
      'the page of the console on a port',
      { origin: 'https://shop.example:8443', host: 'Shop.Example:8443' },
    ],
    ['a browser in which the operator typed the address', { 'sec-fetch-site': 'none' }],
    ['a program', {}],
  ])('the console accepts requests from %s', async (_title, headers) => {
    await using app = await start();
    const sent = { host, ...headers };
    expect(await app.get('/api/overview', sent)).toMatchObject({ status: 200 });
    const action = await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...sent } });
    expect(action).toMatchObject({ status: 200, body: {} });
  });

  it('the console ignores X-Forwarded-Host, which every client can send', async () => {
    await using app = await start();
    const headers = { host, origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' };
    expect(await app.get('/api/overview', headers)).toMatchObject({ status: 403 });
  });

  it('the console allows other sites to link to the page, but not to frame it', async () => {
    await using app = await start();
    const page = await app.get('', { host, 'sec-fetch-site': 'cross-site' });
    expect(page).toMatchObject({ status: 200, headers: { 'x-frame-options': 'DENY' } });
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
  });

  it.each<[string, Record<string, string>, number]>([
    ['without the header of the console', withoutHeader, 403],
    [
      'with another value of the header of the console',
      { ...ACTION, 'x-payments-console': 'true' },
      403,
    ],
    ['as a form', { ...ACTION, 'content-type': 'application/x-www-form-urlencoded' }, 415],
    [
      'with a content type that begins with JSON',
      { ...ACTION, 'content-type': 'application/jsonp' },
      415,
    ],
    ['without a content type', withoutType, 415],
  ])('the console rejects an action sent %s', async (_title, headers, status) => {
    await using app = await start();
    for (const [action, body] of ACTIONS) {
      expect(await app.post(action, body, { headers })).toMatchObject({ status });
    }
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
  });

  it('the console responds 404 to an action with a method other than POST, and changes nothing', async () => {
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

  it('the console rejects other origins in an application whose CORS settings allow all', async () => {
    await using app = await start({
      main: (it) => it.enableCors({ origin: true, credentials: true, exposedHeaders: ['etag'] }),
    });
    const foreign = { host, origin: 'https://evil.example' };
    // The preflight request succeeds. The requests after it are rejected, and the browser may not read the responses.
    const preflight = await app.merchant.exchange(`${PATH}/api/pause`, {
      method: 'OPTIONS',
      headers: {
        ...foreign,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-payments-console',
      },
    });
    expect(preflight.headers['access-control-allow-origin']).toBe('https://evil.example');
    const responses = [
      await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...foreign } }),
      await app.get('/api/overview', foreign),
      await app.get('/api/overview', { host, origin: 'https://shop.example' }),
      await app.get('', foreign),
      await app.get('/assets/console.js', foreign),
    ];
    expect(responses.map(({ status }) => status)).toEqual([403, 403, 200, 200, 200]);
    for (const { headers } of responses) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
  });
});

/** Headers that proxies and platforms add to requests: whole names, and the beginnings of names, of the list in the code. */
const ADDED = [
  'Forwarded',
  'Via',
  'X-Forwarded-For',
  'X-Forwarded',
  'Forwarded-For',
  'X-Real-IP',
  'True-Client-IP',
  'X-Amzn-Trace-Id',
  'CF-Connecting-IP',
  'X-Vercel-Forwarded-For',
];

/** Headers that browsers send, in addition to `Host`. */
const BROWSER_HEADERS = {
  accept: '*/*',
  'accept-encoding': 'gzip, deflate, br, zstd',
  'accept-language': 'en',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  cookie: 'a=b',
  dnt: '1',
  pragma: 'no-cache',
  priority: 'u=1, i',
  referer: 'http://localhost/ops/payments',
  'sec-ch-ua': '"Chromium";v="140"',
  'sec-ch-ua-platform': '"Linux"',
  'sec-fetch-site': 'same-origin',
  'sec-gpc': '1',
  'upgrade-insecure-requests': '1',
  'user-agent': 'Mozilla/5.0',
};

const { NODE_ENV } = process.env;
afterEach(() => {
  process.env['NODE_ENV'] = NODE_ENV;
});

consoleOnEachAdapter((start) => {
  it('without a guard, the console rejects a request with a header that proxies or platforms add', async () => {
    process.env['NODE_ENV'] = 'development';
    await using app = await start({ console: { guards: [] } });
    for (const name of ADDED) {
      const { status } = await app.get('/api/overview', { host: 'localhost', [name]: '127.0.0.1' });
      expect([name, status]).toEqual([name, 403]);
    }
  });

  it('without a guard, the console accepts a request with all headers that browsers send', async () => {
    process.env['NODE_ENV'] = 'development';
    await using app = await start({ console: { guards: [] } });
    const response = await app.get('/api/overview', { ...BROWSER_HEADERS, host: 'localhost' });
    expect(response.status).toBe(200);
  });
});
