import { describe, expect, it } from '@jest/globals';
import { VersioningType } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PaymentsConsoleModule } from 'nestjs-payments-console';
import {
  ConsoleApplication,
  PATH,
  addressesOf,
  asOperator,
  consoleOnEachAdapter,
} from '../../support/console/console-application.js';

consoleOnEachAdapter((start) => {
  const SETTINGS: Record<string, [(app: INestApplication) => unknown, string]> = {
    'a global prefix': [(app) => app.setGlobalPrefix('shop/api'), `/shop/api${PATH}`],
    'a global prefix that excludes it': [
      (app) => app.setGlobalPrefix('api', { exclude: ['ops/payments{/*rest}'] }),
      PATH,
    ],
    'versions in the path': [
      (app) => app.enableVersioning({ type: VersioningType.URI, defaultVersion: '2' }),
      PATH,
    ],
    'versions in a header': [
      (app) =>
        app.enableVersioning({ type: VersioningType.HEADER, header: 'x-v', defaultVersion: '1' }),
      PATH,
    ],
    'versions in the media type': [
      (app) => app.enableVersioning({ type: VersioningType.MEDIA_TYPE, key: 'v=' }),
      PATH,
    ],
  };
  it.each(Object.entries(SETTINGS))(
    'the console works in an application with %s',
    async (_, [main, place]) => {
      await using app = await start({ main: async (it) => void (await main(it)) });
      const headers = { 'x-v': '7', accept: 'application/json;v=3' };
      for (const path of ['', '/', '/assets/console.js', '/api/overview']) {
        const response = await app.merchant.exchange(place + path, { method: 'GET', headers });
        expect([path, response.status]).toEqual([path, 200]);
      }
      const page = await app.merchant.exchange(place, { method: 'GET' });
      for (const address of addressesOf(page, place)) expect(address).toContain(`${place}/assets/`);
    },
  );

  it('the console is available below the path of a RouterModule', async () => {
    await using app = await start({
      imports: [RouterModule.register([{ path: 'admin', module: PaymentsConsoleModule }])],
    });
    for (const end of ['', '/']) {
      const page = await app.merchant.exchange(`/admin${PATH}${end}`, { method: 'GET' });
      expect(page.status).toBe(200);
      for (const address of addressesOf(page, `/admin${PATH}${end}`)) {
        expect(await app.merchant.exchange(address, { method: 'GET' })).toMatchObject({
          status: 200,
        });
      }
    }
  });
});

describe('console paths', () => {
  it('the console boots on Fastify with ignoreTrailingSlash, and responds with and without the slash', async () => {
    for (const option of [
      { ignoreTrailingSlash: true },
      { routerOptions: { ignoreTrailingSlash: true } },
    ]) {
      await using app = await ConsoleApplication.start({ adapter: new FastifyAdapter(option) });
      expect(await app.get('/')).toMatchObject({ status: 200 });
      expect(await app.get('')).toMatchObject({ status: 200 });
    }
  });

  it('the console responds without a trailing slash on Express with strict routing', async () => {
    const adapter = new ExpressAdapter();
    adapter.set('strict routing', true);
    await using app = await ConsoleApplication.start({ adapter });
    const page = await app.get('');
    expect(page.status).toBe(200);
    expect(addressesOf(page, PATH)).toContain(`${PATH}/assets/console.js`);
  });

  it('the console accepts slashes at both ends of the "path" option', async () => {
    await using app = await ConsoleApplication.start({
      console: { path: '/ops/payments/', guards: [asOperator()] },
    });
    expect(await app.get('/api/overview')).toMatchObject({ status: 200 });
  });
});
