import { describe, expect, it } from '@jest/globals';
import { printedBy } from '../../support/processes/start-program.js';

const BEFORE = `
  import 'reflect-metadata';
  import { createRequire, registerHooks } from 'node:module';
  import { Module } from '@nestjs/common';
  import { NestFactory } from '@nestjs/core';
  const required = createRequire(import.meta.url).cache;
  const loaded = new Set();
  const note = (url) => url.includes('/node_modules/undici/') && loaded.add('undici');
  registerHooks({ load: (url, context, next) => { note(url); return next(url, context); } });
  const loadedNow = () => { Object.keys(required).forEach(note); return [...loaded].sort(); };
  async function start(api) {
    const { PaymentsModule } = await import('nestjs-payments');
    class App {}
    Module({
      imports: [PaymentsModule.forRoot({
        baseUrl: 'http://127.0.0.1:9', clientId: 'i', clientSecret: 's', webhookSecret: 's', api,
      })],
    })(App);
    const app = await NestFactory.create(App, { logger: false, abortOnError: false });
    await app.listen(0, '127.0.0.1');
    return app;
  }
  async function call(app) {
    const { PaymentsApiService } = await import('nestjs-payments');
    return app.get(PaymentsApiService).get('/v1/things').catch(({ code }) => ({ code }));
  }`;

const printed = (script: string) => printedBy(`${BEFORE}\n${script}`);

describe('loading undici', () => {
  it.each([
    ['undici', ['undici']],
    ['http', []],
    ['fetch', []],
  ])('AP-10 the adapter %s loads no HTTP package before the first call', async (adapter, names) => {
    const script = `
      const app = await start({ adapter: '${adapter}' });
      const before = loadedNow();
      const { code } = await call(app);
      console.log(JSON.stringify({ before, code, after: loadedNow() }));
      await app.close();`;
    expect(JSON.parse(await printed(script))).toEqual({
      before: [],
      code: 'token_unavailable',
      after: names,
    });
  });

  it('TK-20 an application that closes before its first call loads no HTTP package', async () => {
    const script = `
      const app = await start();
      await app.close();
      const { code } = await call(app);
      console.log(JSON.stringify({ code, loaded: loadedNow() }));`;
    expect(JSON.parse(await printed(script))).toEqual({ code: 'aborted', loaded: [] });
  });
});
