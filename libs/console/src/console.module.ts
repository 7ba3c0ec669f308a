import {
  Controller,
  Inject,
  Injectable,
  Logger,
  Module,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import type { DynamicModule, OnApplicationShutdown, OnModuleInit, Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { ThrottledLog } from 'nestjs-payments';
import { AuditTrail } from './audit-trail.js';
import { BasicAuthGuard } from './basic-auth.guard.js';
import { ConsoleActions } from './console-actions.js';
import { ConsoleApi } from './console-api.controller.js';
import { ConsoleAssets } from './console-assets.js';
import { ApiExceptionFilter, PageExceptionFilter } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import { CsvExport } from './csv-export.js';
import { CONSOLE_OPTIONS, requireGuard, resolveConsoleOptions } from './console-options.js';
import type { PaymentsConsoleOptions, ResolvedConsoleOptions } from './console-options.js';
import { ConsoleOverview } from './console-overview.js';
import { ConsolePage } from './console-page.controller.js';
import { ThrottlerExemption, TrailingSlashRoutes } from './nest-internals.js';
import { ApiOriginGuard, PageOriginGuard } from './request-origin.guard.js';
import { ResponseWriter } from './response-writer.js';

/**
 * Checks that the console has a guard. This check runs when the application boots, not earlier, because `NODE_ENV` may
 * come from a `.env` file.
 */
@Injectable()
class GuardCheck implements OnModuleInit {
  readonly #logger = new Logger('PaymentsConsole');

  constructor(@Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions) {}

  onModuleInit(): void {
    requireGuard(this.options, process.env['NODE_ENV']);
    if (this.options.guards.length > 0) return;
    this.#logger.warn(
      `The console at "${this.options.path}" has no guard. NODE_ENV is "development", so the console responds to ` +
        'browsers on this machine only. In any other environment, the application does not start without a guard.',
    );
  }
}

/** When the application has closed, logs how many warnings were suppressed because of their limit per minute. */
@Injectable()
class SuppressedWarnings implements OnApplicationShutdown {
  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    private readonly log: ThrottledLog,
  ) {}

  onApplicationShutdown(): void {
    this.log.flush();
    // Nest calls this hook of a guard only if the guard was given as a class, not as an instance.
    for (const guard of this.options.guards) {
      if (guard instanceof BasicAuthGuard) guard.onApplicationShutdown();
    }
  }
}

/**
 * Adds a page for operators to the application. The page shows the events in the payments inbox, and which events
 * failed and why. The page has buttons to redrive and skip deliveries, and to pause and resume handlers. At least one module of
 * the application must import `PaymentsModule`.
 *
 * @example
 * ```ts
 * @Module({
 *   imports: [
 *     PaymentsModule.forRootAsync(paymentsConfig.asProvider()),
 *     PaymentsConsoleModule.register({ path: 'ops/payments', guards: [OperatorsOnly], imports: [AuthModule] }),
 *   ],
 * })
 * export class AppModule {}
 * ```
 */
@Module({})
export class PaymentsConsoleModule {
  /**
   * Mounts the console at `path`, for operators that the `guards` accept. You can register the console at several
   * paths. There is no `registerAsync`, because Nest maps routes before asynchronous options are known. If a password
   * or a key is known only later, use a guard that injects the password or key.
   *
   * @throws PaymentsError `options_invalid`, which names the option and the fix. The boot of the application fails with
   *   the same code if there is no guard, unless `NODE_ENV` is `development`.
   */
  static register(options: PaymentsConsoleOptions): DynamicModule {
    const resolved = resolveConsoleOptions(options);
    const controllers = controllersFor(resolved);
    return {
      module: PaymentsConsoleModule,
      imports: [...(options.imports ?? [])],
      controllers,
      providers: [
        { provide: CONSOLE_OPTIONS, useValue: resolved },
        {
          provide: ThrottledLog,
          useFactory: () => new ThrottledLog(new Logger('PaymentsConsole'), resolved.runtime),
        },
        GuardCheck,
        SuppressedWarnings,
        {
          provide: ThrottlerExemption,
          useFactory: (modules: ModuleRef) => new ThrottlerExemption(modules, controllers),
          inject: [ModuleRef],
        },
        TrailingSlashRoutes,
        ResponseWriter,
        { provide: ConsoleAssets, useFactory: () => ConsoleAssets.load() },
        ConsoleInbox,
        ConsoleOverview,
        ConsoleActions,
        CsvExport,
        AuditTrail,
      ],
    };
  }
}

/** Creates new classes for each registration, because Nest stores the path and the guards on the class. */
function controllersFor({ path, guards }: ResolvedConsoleOptions): Type[] {
  const options = { path, version: VERSION_NEUTRAL } as const;

  @Controller(options)
  @UseGuards(PageOriginGuard, ...guards)
  @UseFilters(PageExceptionFilter)
  class PaymentsConsolePage extends ConsolePage {}

  @Controller(options)
  @UseGuards(ApiOriginGuard, ...guards)
  @UseFilters(ApiExceptionFilter)
  class PaymentsConsoleApi extends ConsoleApi {}

  return [PaymentsConsolePage, PaymentsConsoleApi];
}
