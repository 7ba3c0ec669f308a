import { describe, expect, it } from '@jest/globals';
import { printedBy } from '../support/own.process.js';

const BEFORE = `
  import 'reflect-metadata';
  import { createRequire, registerHooks } from 'node:module';
  import { Module } from '@nestjs/common';
  import { NestFactory } from '@nestjs/core';
  import { PaymentsApiService, PaymentsModule } from 'nestjs-payments';
  async function start(runtime) {
    class App {}
    Module({
      imports: [PaymentsModule.forRoot({
        baseUrl: 'http://127.0.0.1:9', clientId: 'i', clientSecret: 's', webhookSecret: 's', runtime,
      })],
    })(App);
    const app = await NestFactory.create(App, { logger: false, abortOnError: false });
    await app.listen(0, '127.0.0.1');
    return app;
  }
  // form-data is axios's.
  const loaded = () => ['undici', 'form-data'].filter((name) =>
    Object.keys(createRequire(import.meta.url).cache)
      .some((file) => new RegExp('node_modules.' + name + '\\\\b(?!-)').test(file)));`;

const printed = (script: string) => printedBy(`${BEFORE}\n${script}`);

describe('axios and undici', () => {
  it('are not loaded for an application to listen, but soon after it does', async () => {
    const script = `
      const app = await start();
      const atFirst = loaded();
      while (loaded().length < 2) await new Promise(setImmediate);
      await app.close();
      console.log(JSON.stringify({ atFirst, later: loaded() }));`;
    expect(JSON.parse(await printed(script))).toEqual({
      atFirst: [],
      later: ['undici', 'form-data'],
    });
  });

  it('are loaded by a call that comes before', async () => {
    const script = `
      const app = await start();
      const error = await app.get(PaymentsApiService).get('/v1/things').catch((error) => error);
      console.log(JSON.stringify({ code: error.code, loaded: loaded() }));
      await app.close();`;
    expect(JSON.parse(await printed(script))).toEqual({
      code: 'token_unavailable',
      loaded: ['undici', 'form-data'],
    });
  });

  it('are not loaded for an application that was closed before', async () => {
    const script = `
      const timers = new Set();
      const app = await start({
        now: Date.now, monotonic: () => 0, random: () => 0.5,
        schedule: (ms, callback) => { timers.add(callback); return () => timers.delete(callback); },
      });
      const before = timers.size;
      await app.close();
      console.log(JSON.stringify({ before: before > 0, after: timers.size, loaded: loaded() }));`;
    expect(JSON.parse(await printed(script))).toEqual({ before: true, after: 0, loaded: [] });
  });

  it.each(['@nestjs/axios', 'axios'])(
    'that %s is not installed is told at boot, by its name',
    async (name) => {
      const script = `
        registerHooks({
          resolve: (specifier, context, next) => next(specifier === '${name}' ? 'gone' : specifier, context),
        });
        await start().then((app) => app.close(), (error) => console.log(error.code, error.message));`;
      expect(await printed(script)).toMatch(/^MODULE_NOT_FOUND Cannot find module 'gone'/);
    },
  );
});
