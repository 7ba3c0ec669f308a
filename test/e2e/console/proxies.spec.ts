import { afterEach, expect, it } from '@jest/globals';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';

/** Headers that proxies, networks and platforms add to requests, according to their documentation. */
const ADDED: Readonly<Record<string, readonly string[]>> = {
  'the standards': ['Forwarded', 'Via', 'CDN-Loop'],
  'common proxies': [
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Port',
    'X-Forwarded-Server',
    'X-Forwarded',
    'Forwarded-For',
    'X-Original-Forwarded-For',
    'X-Original-Host',
    'X-Real-IP',
    'X-Scheme',
    'Front-End-Https',
    'Client-IP',
    'X-Client-IP',
    'X-Cluster-Client-IP',
    'True-Client-IP',
    'X-ProxyUser-Ip',
    'X-Request-Start',
    'WL-Proxy-Client-IP',
    'X-Auth-Request-User',
  ],
  Akamai: ['X-Akamai-Edgescape', 'Akamai-Origin-Hop'],
  'Amazon Web Services': ['X-Amzn-Trace-Id', 'X-Amz-Cf-Id', 'CloudFront-Viewer-Address'],
  Azure: [
    'X-Azure-ClientIP',
    'X-Azure-FDID',
    'X-ARR-LOG-ID',
    'X-ARR-SSL',
    'X-AppGW-Trace-Id',
    'X-MS-CLIENT-PRINCIPAL',
    'X-WAWS-Unencoded-URL',
    'X-SITE-DEPLOYMENT-ID',
    'DISGUISED-HOST',
    'WAS-DEFAULT-HOSTNAME',
  ],
  Bunny: ['CDN-RequestCountryCode'],
  Cloudflare: ['CF-Connecting-IP', 'CF-Ray', 'CF-IPCountry', 'Cf-Access-Jwt-Assertion'],
  DigitalOcean: ['DO-Connecting-IP'],
  'Envoy and Istio': ['X-Envoy-External-Address', 'X-Envoy-Expected-Rq-Timeout-Ms'],
  Fastly: ['Fastly-Client-IP', 'Fastly-FF', 'X-Varnish'],
  'Fly.io': ['Fly-Client-IP', 'Fly-Region'],
  Google: ['X-AppEngine-User-IP', 'X-Cloud-Trace-Context', 'X-Goog-IAP-JWT-Assertion'],
  Heroku: ['Connect-Time', 'Total-Route-Time'],
  Imperva: ['Incap-Client-IP'],
  Netlify: ['X-NF-Client-Connection-IP'],
  Pomerium: ['X-Pomerium-Jwt-Assertion'],
  Railway: ['X-Railway-Edge'],
  Render: ['Rndr-Id', 'Render-Proxy-TTL'],
  Sucuri: ['X-Sucuri-ClientIP'],
  Tailscale: ['Tailscale-User-Login'],
  Vercel: ['X-Vercel-Id', 'X-Vercel-Forwarded-For'],
};

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
  it.each(Object.entries(ADDED))(
    'without a guard, the console rejects a request with a header that %s adds',
    async (_, names) => {
      process.env['NODE_ENV'] = 'development';
      await using app = await start({ console: { guards: [] } });
      const host = 'localhost';
      expect(await app.get('/api/overview', { host })).toMatchObject({ status: 200 });
      for (const name of names) {
        const { status } = await app.get('/api/overview', { host, [name]: '127.0.0.1' });
        expect([name, status]).toEqual([name, 403]);
      }
    },
  );

  it('without a guard, the console accepts a request with every header of a browser', async () => {
    process.env['NODE_ENV'] = 'development';
    await using app = await start({ console: { guards: [] } });
    const response = await app.get('/api/overview', { ...BROWSER_HEADERS, host: 'localhost' });
    expect(response.status).toBe(200);
  });
});
