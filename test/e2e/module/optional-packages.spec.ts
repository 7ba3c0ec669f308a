import { describe, expect, it } from '@jest/globals';
import { printedBy } from '../../support/processes/start-program.js';

/** A program that records which packages are loaded. The packages in `missing` do not exist for it. */
const program = (script: string, missing: readonly string[] = []) => `
  import 'reflect-metadata';
  import { createRequire, registerHooks } from 'node:module';
  registerHooks({
    resolve(name, context, next) {
      if (!${JSON.stringify(missing)}.includes(name)) return next(name, context);
      throw Object.assign(new Error('Cannot find package ' + name), { code: 'ERR_MODULE_NOT_FOUND' });
    },
  });
  const { Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { OnPaymentEvent, PaymentsModule, paymentsConfig } = await import('nestjs-payments');
  const loaded = () => ['class-validator', 'class-transformer', 'dotenv'].filter((name) =>
    Object.keys(createRequire(import.meta.url).cache)
      .some((file) => file.includes('node_modules/' + name + '/')));
  Object.assign(process.env, {
    PAYMENTS_BASE_URL: 'http://127.0.0.1:9', PAYMENTS_CLIENT_ID: 'i', PAYMENTS_CLIENT_SECRET: 's',
    PAYMENTS_WEBHOOK_SECRET: 'w',
  });
  class Payment {}
  async function boot(options) {
    class Orders { markPaid() {} }
    OnPaymentEvent('transaction.completed', options)(
      Orders.prototype, 'markPaid', Object.getOwnPropertyDescriptor(Orders.prototype, 'markPaid'));
    class App {}
    Module({
      imports: [PaymentsModule.forRootAsync(paymentsConfig.asProvider())], providers: [Orders],
    })(App);
    const app = await NestFactory.create(App, { logger: false, abortOnError: false });
    await app.init();
    await app.close();
  }
  ${script}`;

const printed = async (...args: Parameters<typeof program>) =>
  JSON.parse(await printedBy(program(...args))) as unknown;

describe('optional packages', () => {
  // @nestjs/config loads dotenv.
  it('AP-10 optional packages are not loaded by an application with paymentsConfig and without a data class', async () => {
    expect(await printed('await boot(); console.log(JSON.stringify(loaded()));')).toEqual([]);
  });

  it('AP-10 optional packages are not needed by an application with paymentsConfig and without a data class', async () => {
    const missing = [
      '@nestjs/config',
      '@nestjs/terminus',
      '@opentelemetry/api',
      'class-validator',
      'class-transformer',
    ];
    expect(await printed("await boot(); console.log('true');", missing)).toBe(true);
  });

  it('AP-10 optional packages are loaded at boot if a handler has a data class', async () => {
    const script = 'await boot({ data: Payment }); console.log(JSON.stringify(loaded()));';
    expect(await printed(script)).toEqual(['class-validator', 'class-transformer']);
  });

  it.each(['class-validator', 'class-transformer'])(
    'AP-10 the boot fails if a handler has a data class and %s is missing, and the error contains the install command',
    async (name) => {
      const script = `
        const error = await boot({ data: Payment }).catch((error) => error);
        console.log(JSON.stringify([error.code, error.message, error.cause.message]));`;
      expect(await printed(script, [name])).toEqual([
        'handlers_invalid',
        '@OnPaymentEvent(…, { data }) on Orders.markPaid (App) needs the packages class-validator and ' +
          'class-transformer, and they cannot be loaded. Run: npm install class-validator class-transformer',
        `Cannot find package ${name}`,
      ]);
    },
  );
});

/** Returns which of the listed packages, built-in modules and stores are loaded after an import. */
const loadedBy = async (entry: string) => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
    await import('${entry}');
    console.log(JSON.stringify(loaded));`;
  const urls = JSON.parse(await printedBy(script)) as string[];
  const names = ['axios', '@nestjs/axios', 'undici', 'pg', 'class-validator', 'class-transformer'];
  const telemetry = ['api', 'core', 'sdk-trace', 'sdk-metrics'].map(
    (name) => `@opentelemetry/${name}`,
  );
  return [
    ...[...names, ...telemetry].filter((name) =>
      urls.some((url) => url.includes(`/node_modules/${name}/`)),
    ),
    ...urls.filter((url) => url === 'node:sqlite'),
    ...['sqlite', 'postgres'].filter((store) =>
      urls.some((url) => url.includes(`/stores/${store}/`)),
    ),
  ];
};

describe('imports of the package', () => {
  it.each([
    ['nestjs-payments', []],
    ['nestjs-payments/testing', []],
    ['nestjs-payments/engines', []],
    ['nestjs-payments/sqlite', ['sqlite']],
    ['nestjs-payments/postgres', ['postgres']],
    ['nestjs-payments/otel', ['@opentelemetry/api']],
    // The rows below check that the list contains a package if it is loaded.
    ['@nestjs/axios', ['axios', '@nestjs/axios']],
    ['node:sqlite', ['node:sqlite']],
    [
      '@opentelemetry/sdk-trace',
      ['@opentelemetry/api', '@opentelemetry/core', '@opentelemetry/sdk-trace'],
    ],
  ])(
    'AP-10 of all stores, drivers, HTTP clients, validators and telemetry packages, an import of %s loads only %j',
    async (entry, expected) => {
      expect(await loadedBy(entry)).toEqual(expected);
    },
  );
});
