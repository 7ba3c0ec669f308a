import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import {
  PATH,
  addressesOf,
  consoleOnEachAdapter,
  importMapOf,
  setHeadersFirst,
} from '../../support/console/console-application.js';

const SECURE = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};
const NOTHING = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'";

consoleOnEachAdapter((start) => {
  it.each(['', '/'])(
    'the console serves the page at its path followed by %p, and its files below the path',
    async (end) => {
      await using app = await start();
      const page = await app.get(end);
      expect(page).toMatchObject({
        status: 200,
        headers: {
          ...SECURE,
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
        },
      });
      expect(page.text).not.toMatch(/%[A-Z]+%|<!--/);
      const addresses = addressesOf(page, `${PATH}${end}`);
      expect(addresses.length).toBeGreaterThanOrEqual(9);
      for (const address of addresses) {
        expect(address).toMatch(/^\/ops\/payments\/assets\//);
        expect(await app.merchant.exchange(address, { method: 'GET' })).toMatchObject({
          status: 200,
        });
      }
      // A proxy may add a prefix to the path.
      for (const address of addressesOf(page, `/shop${PATH}${end}`)) {
        expect(address).toMatch(/^\/shop\/ops\/payments\/assets\//);
      }
    },
  );

  it.each(['', '/'])(
    'the console allows the page at %p to run only its own files and its import map',
    async (end) => {
      await using app = await start();
      const page = await app.get(end);
      const hash = createHash('sha256').update(importMapOf(page)).digest('base64');
      expect(String(page.headers['content-security-policy']).split('; ')).toEqual([
        "default-src 'none'",
        `script-src 'self' 'sha256-${hash}'`,
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
      ]);
      const inline = [...page.text.matchAll(/<script(?![^>]*\ssrc=)[^>]*>/g)];
      expect(inline.map(([tag]) => tag)).toEqual(['<script type="importmap">']);
      expect(page.text).not.toMatch(/<style|\sstyle=|\son\w+=/);
    },
  );

  it('the console serves files with their type, and responds 304 if the browser has the file', async () => {
    await using app = await start();
    const types = {
      'console.css': 'text/css; charset=utf-8',
      'uPlot.min.css': 'text/css; charset=utf-8',
      'icon.svg': 'image/svg+xml; charset=utf-8',
      'preact.mjs': 'text/javascript; charset=utf-8',
    };
    for (const [file, type] of Object.entries(types)) {
      const { status, headers, text } = await app.get(`/assets/${file}`);
      const etag = `"${createHash('sha256').update(text).digest('base64url')}"`;
      expect({ status, ...headers }).toMatchObject({
        status: 200,
        ...SECURE,
        'content-type': type,
        'cache-control': 'private, no-cache',
        'content-security-policy': NOTHING,
        etag,
      });
      for (const tags of [etag, `W/${etag}`, `"x", ${etag}`]) {
        const again = await app.get(`/assets/${file}`, { 'if-none-match': tags });
        expect(again).toMatchObject({ status: 304, text: '', headers: { etag } });
      }
      expect(await app.get(`/assets/${file}`, { 'if-none-match': '"x"' })).toMatchObject({
        status: 200,
      });
    }
  });

  it.each([
    'nothing.js',
    'console.html',
    '..%2fpackage.json',
    '..%5cpackage.json',
    'console.js%00',
    '__proto__',
  ])('the console responds 404 for the file %s', async (file) => {
    await using app = await start();
    const response = await app.get(`/assets/${file}`);
    expect(response).toMatchObject({
      status: 404,
      headers: { ...SECURE, 'content-security-policy': NOTHING, 'cache-control': 'no-store' },
      body: { error: 'The console has no such file.' },
    });
  });

  it('the console responds to HEAD with the same headers as to GET, and without a body', async () => {
    await using app = await start();
    for (const path of ['', '/', '/assets/console.js', '/api/overview']) {
      const head = await app.merchant.exchange(PATH + path, { method: 'HEAD' });
      const { headers } = await app.get(path);
      expect(head).toMatchObject({ status: 200, text: '' });
      expect(head.headers['content-type']).toBe(headers['content-type']);
      expect(head.headers['content-security-policy']).toBe(headers['content-security-policy']);
    }
  });

  it('the console replaces the security headers that the application sets for all routes', async () => {
    await using app = await start({
      main: (it) =>
        setHeadersFirst(it, {
          'content-security-policy': "default-src * 'unsafe-inline'",
          'x-frame-options': 'SAMEORIGIN',
          'referrer-policy': 'unsafe-url',
          'cache-control': 'public, max-age=3600',
          'access-control-allow-origin': '*',
          'access-control-allow-credentials': 'true',
        }),
    });
    for (const path of ['', '/assets/console.js', '/assets/none', '/api/overview', '/api/event']) {
      const { headers } = await app.get(path);
      expect(headers).toMatchObject(SECURE);
      expect(headers['content-security-policy']).not.toContain('*');
      expect(headers['cache-control']).toMatch(/^(?:no-store|private, no-cache)$/);
      expect(Object.keys(headers).filter((it) => it.startsWith('access-control'))).toEqual([]);
    }
  });
});
