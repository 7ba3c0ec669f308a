import { afterEach, describe, expect, it } from '@jest/globals';
import { Global, Injectable, Module } from '@nestjs/common';
import type { DynamicModule, INestApplication, NestApplicationOptions } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { PaymentInbox, PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import { bootFailure } from '../../support/webhook/boot-failure.js';
import { CapturedLog } from '../../support/log/captured-log.js';
import { OPTIONS, Orders } from '../../support/webhook/webhook-application.js';

const open: INestApplication[] = [];
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
});

/** A module of the application that imports another module. */
function importing(name: string, ...imports: NonNullable<DynamicModule['imports']>): DynamicModule {
  const module = { [name]: class {} }[name]!;
  Module({ imports })(module);
  return { module };
}

async function boot(
  imports: NonNullable<DynamicModule['imports']>,
  options: NestApplicationOptions = {},
): Promise<INestApplication> {
  @Module({ imports, providers: [Orders] })
  class AppModule {}
  const app = await NestFactory.create(AppModule, {
    logger: new CapturedLog(),
    abortOnError: false,
    ...options,
  });
  open.push(app);
  return app.init();
}

const forRoot = (isGlobal = false) => PaymentsModule.forRoot({ ...OPTIONS, isGlobal });
const forRootAsync = (isGlobal = false) =>
  PaymentsModule.forRootAsync({ useFactory: () => OPTIONS, isGlobal });
const twice = (...names: string[]) =>
  `it is imported more than once in this application: by ${names.join(' and by ')}. Import it once.`;

@Global()
@Module({})
class SettingsModule {}

describe('AP-09 PaymentsModule imported in two modules', () => {
  it.each([
    ['forRoot twice', () => [forRoot(), forRoot()]],
    ['forRootAsync twice', () => [forRootAsync(), forRootAsync()]],
    ['forRoot and forRootAsync', () => [forRoot(), forRootAsync()]],
    ['one import is global', () => [forRoot(true), forRootAsync()]],
    ['both imports are global', () => [forRootAsync(true), forRoot(true)]],
  ])(
    'AP-09 an import in two modules (%s) is rejected, and the error names both modules and the fix',
    async (_, create) => {
      const [first, second] = create();
      const { error } = await bootFailure(
        SettingsModule,
        importing('BillingModule', first!),
        importing('OrdersModule', second!),
        importing('UnrelatedModule'),
      );
      expect(error).toMatchObject({ code: 'options_invalid' });
      expect(error.message).toContain(twice('BillingModule', 'OrdersModule'));
      expect(error.message).toMatch(/exports PaymentsModule.*"isGlobal: true"/);
    },
  );

  it('AP-09 a second import is rejected before an options factory runs', async () => {
    let runs = 0;
    const create = () => PaymentsModule.forRootAsync({ useFactory: () => ((runs += 1), OPTIONS) });
    const { error } = await bootFailure(importing('A', create()), importing('B', create()));
    expect(error.message).toContain(twice('A', 'B'));
    expect(runs).toBe(0);
  });

  it('AP-09 two imports in one module are rejected', async () => {
    const { error } = await bootFailure(forRoot(), forRoot());
    expect(error.message).toContain(twice('AppModule', 'AppModule'));
  });

  it('AP-09 an import without options is rejected, and the error names the fix', async () => {
    const { error } = await bootFailure(PaymentsModule);
    expect(error.message).toMatch(/without options.*forRoot\(\) or forRootAsync\(\)/);
  });

  it('AP-09 imports with and without options are rejected, and the error names both modules', async () => {
    const { error } = await bootFailure(forRoot(), importing('BillingModule', PaymentsModule));
    expect(error.message).toMatch(
      /more than once.*by (AppModule and by Billing|BillingModule and by App)/,
    );
  });

  it('AP-09 a second import by a module that is loaded later is rejected', async () => {
    const app = await boot([forRoot()]);
    const late = importing('LateModule', forRoot());
    await expect(app.get(LazyModuleLoader).load(() => late)).rejects.toThrow(
      twice('AppModule', 'LateModule'),
    );
  });

  it.each(['reference', 'deep-hash'] as const)(
    'AP-09 two imports are rejected if Nest identifies modules by %s',
    async (moduleIdGeneratorAlgorithm) => {
      const imports = [importing('A', forRoot()), importing('B', forRoot())];
      await expect(boot(imports, { moduleIdGeneratorAlgorithm })).rejects.toThrow(twice('A', 'B'));
    },
  );
});

@Injectable()
class Billing {
  constructor(
    readonly payments: PaymentsApiService,
    readonly inbox: PaymentInbox,
  ) {}
}
Reflect.defineMetadata('design:paramtypes', [PaymentsApiService, PaymentInbox], Billing);

/** A module that injects an exported provider of PaymentsModule, with the given imports. */
function billing(...imports: NonNullable<DynamicModule['imports']>): DynamicModule {
  return { module: class BillingModule {}, imports, providers: [Billing] };
}

describe('PaymentsModule imported once', () => {
  it.each(['reference', 'deep-hash'] as const)(
    'AP-09 two modules may import the same dynamic module if Nest identifies modules by %s',
    async (moduleIdGeneratorAlgorithm) => {
      const payments = forRoot();
      const app = await boot([payments, billing(payments)], { moduleIdGeneratorAlgorithm });
      expect(app.get(Billing, { strict: false }).inbox).toBe(app.get(PaymentInbox));
    },
  );

  it('AP-09 a module may export PaymentsModule to other modules', async () => {
    const shared = { module: class Shared {}, imports: [forRoot()], exports: [PaymentsModule] };
    const app = await boot([shared, billing(shared)]);
    expect(app.get(Billing, { strict: false }).inbox).toBe(
      app.get(PaymentInbox, { strict: false }),
    );
  });
});
