import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Module, VersioningType } from '@nestjs/common';
import type { CanActivate, ExecutionContext, INestApplication } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PaymentsConsoleModule } from 'nestjs-payments-console';
import type { PaymentsConsoleOptions } from 'nestjs-payments-console';
import {
  ConsoleApplication,
  PATH,
  addressesOf,
  asOperator,
  consoleOnEachAdapter,
} from '../../support/console/console-application.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

const environment = process.env['NODE_ENV'];
afterEach(() => {
  if (environment === undefined) delete process.env['NODE_ENV'];
  else process.env['NODE_ENV'] = environment;
});

function setEnvironment(value: string | undefined): void {
  if (value === undefined) delete process.env['NODE_ENV'];
  else process.env['NODE_ENV'] = value;
}

/** Returns the error with which the boot rejects. */
async function bootError(options: object): Promise<{ code?: string; message: string }> {
  try {
    const app = await WebhookApplication.start({
      imports: [PaymentsConsoleModule.register(options as PaymentsConsoleOptions)],
    });
    await app.app.close();
    return { message: 'it booted' };
  } catch (error) {
    return error as Error;
  }
}

@Injectable()
class Badges {
  readonly valid = 'badge-7';
}
@Module({ providers: [Badges], exports: [Badges] })
class BadgesModule {}
@Injectable()
class BadgeGuard implements CanActivate {
  constructor(@Inject(Badges) private readonly badges: Badges) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return headers['x-badge'] === this.badges.valid;
  }
}

describe('console boot', () => {
  it.each([undefined, '', 'production', 'test', 'dev', 'Development', 'development '])(
    'the console does not start without a guard if NODE_ENV is %p; the error names the fix',
    async (value) => {
      setEnvironment(value);
      for (const guards of [undefined, []]) {
        const { code, message } = await bootError({ path: PATH, ...(guards && { guards }) });
        expect(code).toBe('options_invalid');
        expect(message).toMatch(/has no guard.*guards: \[YourGuard\].*BasicAuthGuard/);
      }
    },
  );

  it('the console starts without a guard in development, and logs a warning', async () => {
    setEnvironment('development');
    await using app = await ConsoleApplication.start({ console: { guards: [] } });
    expect(app.log.filter((line) => /^warn .*ops\/payments.*no guard/.test(line))).toHaveLength(1);
  });

  it.each<[string, object, RegExp]>([
    ['no path', { guards: [asOperator()] }, /"path" must be a plain path/],
    ['an empty path', { path: '/', guards: [asOperator()] }, /"path"/],
    ['a path with a parameter', { path: 'ops/:id', guards: [asOperator()] }, /"path"/],
    ['a guard that is undefined', { path: PATH, guards: [undefined] }, /probably imports the file/],
    ['a guard without canActivate', { path: PATH, guards: [class {}] }, /canActivate/],
    ['guards that are not a list', { path: PATH, guards: asOperator() }, /"guards"/],
    [
      'imports that are not a list',
      { path: PATH, guards: [asOperator()], imports: {} },
      /"imports"/,
    ],
    ['who that is not a function', { path: PATH, guards: [asOperator()], who: 'ann' }, /"who"/],
    ['a runtime without timers', { path: PATH, guards: [asOperator()], runtime: {} }, /"runtime"/],
    ['an unknown option', { path: PATH, guard: asOperator() }, /no option "guard"/],
  ])('the console does not start with %s', async (_, options, message) => {
    expect(await bootError(options)).toMatchObject({
      code: 'options_invalid',
      message: expect.stringMatching(message),
    });
  });

  it('the console does not start without an inbox; the error names the missing module', async () => {
    const started = WebhookApplication.start({
      payments: false,
      imports: [PaymentsConsoleModule.register({ path: PATH, guards: [asOperator()] })],
    });
    await expect(started).rejects.toThrow(/has no inbox. Import PaymentsModule/);
  });
});

consoleOnEachAdapter((start) => {
  it.each([true, false])('the console finds the inbox if isGlobal is %p', async (isGlobal) => {
    await using app = await start({ payments: { isGlobal } });
    expect(await app.get('/api/overview')).toMatchObject({ status: 200 });
  });

  it('the console injects exports of the imported modules into guards', async () => {
    await using app = await start({ console: { guards: [BadgeGuard], imports: [BadgesModule] } });
    for (const path of ['', '/assets/console.js', '/api/overview']) {
      expect(await app.get(path)).toMatchObject({ status: 403 });
      expect(await app.get(path, { 'x-badge': 'badge-7' })).toMatchObject({ status: 200 });
    }
  });

  it('the console calls the guards in their order, until one returns false', async () => {
    const called: string[] = [];
    const guard = (name: string, result: boolean): CanActivate => ({
      canActivate: () => called.push(name) > 0 && result,
    });
    await using app = await start({
      console: { guards: [guard('a', true), guard('b', false), guard('c', true)] },
    });
    expect(await app.get('/api/overview')).toMatchObject({
      status: 403,
      body: { error: 'Forbidden resource' },
    });
    expect(called).toEqual(['a', 'b']);
  });

  it('if the console is registered twice, each registration has its own path and guards', async () => {
    const closed: CanActivate = { canActivate: () => false };
    await using app = await start({
      imports: [PaymentsConsoleModule.register({ path: 'closed', guards: [closed] })],
    });
    expect(await app.get('/api/overview')).toMatchObject({ status: 200 });
    const { status } = await app.merchant.exchange('/closed/api/overview', { method: 'GET' });
    expect(status).toBe(403);
    expect(await app.get('')).toMatchObject({ status: 200 });
  });

  it('without a guard, the console responds only to requests from this machine', async () => {
    setEnvironment('development');
    await using app = await start({ console: { guards: [] } });
    const { port } = new URL(app.merchant.url);
    for (const host of [`127.0.0.1:${port}`, 'localhost', `LOCALHOST:${port}`, '[::1]:80']) {
      expect(await app.get('/api/overview', { host })).toMatchObject({ status: 200 });
      expect(await app.get('', { host })).toMatchObject({ status: 200 });
    }
    const others = [
      'shop.example',
      'localhost.shop.example',
      '10.0.0.1',
      '127.0.0.1.shop.example',
      'shop.example@localhost',
      'localhost?shop.example',
      '',
    ];
    for (const host of others) {
      for (const path of ['', '/assets/console.js', '/api/overview']) {
        const response = await app.get(path, { host });
        expect(response.status).toBe(403);
        expect(response.body['error']).toMatch(/only to a browser on this machine.*Add a guard/);
      }
    }
    expect(app.log.filter((line) => /rejected a client/.test(line))).toHaveLength(1);
    app.runtime.advance(60_000);
    const lines = app.log.filter((line) => /rejected a client/.test(line));
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/19 more since the previous line/);
    await app.get('', { host: 'shop.example' });
    await app.merchant.app.close();
    expect(app.log.filter((line) => /rejected a client/.test(line))).toHaveLength(3);
  });
});

consoleOnEachAdapter((start) => {
  const SETTINGS: Record<string, [(app: INestApplication) => unknown, string]> = {
    'a global prefix': [(app) => app.setGlobalPrefix('shop/api'), `/shop/api${PATH}`],
    'a global prefix that excludes the console': [
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
