import { Inject, Injectable, Logger, Module } from '@nestjs/common';
import type { DynamicModule, OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { ConsoleActions } from './console-actions.js';
import { ConsoleAnswers } from './console-answers.js';
import { ConsoleAssets } from './console-assets.js';
import { consoleControllers } from './console-controllers.js';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS, requireGuard, resolveConsoleOptions } from './console-options.js';
import type { PaymentsConsoleOptions, ResolvedConsoleOptions } from './console-options.js';
import { ConsoleOverview } from './console-overview.js';
import { PayloadAudit } from './payload-audit.js';
import { ThrottlerSkip } from './throttler-skip.js';
import { TrailingSlash } from './trailing-slash.js';

/** Looks at the guards once the application boots: by then the environment is complete, `.env` files included. */
@Injectable()
class GuardCheck implements OnModuleInit {
  readonly #logger = new Logger('PaymentsConsole');

  constructor(@Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions) {}

  onModuleInit(): void {
    requireGuard(this.options, process.env['NODE_ENV']);
    if (this.options.guards.length > 0) return;
    this.#logger.warn(
      `The console at "${this.options.path}" has no guard. As NODE_ENV is "development" it answers, but only a ` +
        'browser on this machine. Elsewhere the application will not start without one.',
    );
  }
}

/**
 * A page for operators, in the merchant's own application: what the payments inbox holds, what failed and why, and
 * buttons to run it again, skip it, pause and resume. Needs `PaymentsModule` in the same application; in which of
 * its modules does not matter.
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
   * Mounts the console at `path` for those `guards` let in. There is no `registerAsync`: routes are mapped before
   * anything asynchronous is known, and what is known late (a password, a key) belongs to a guard, which Nest makes
   * with everything it injects.
   *
   * @throws PaymentsError `options_invalid`, naming the option and the mend. Without a guard, the application's boot
   *   rejects with it, unless `NODE_ENV` is `development`.
   */
  static register(options: PaymentsConsoleOptions): DynamicModule {
    const resolved = resolveConsoleOptions(options);
    const controllers = consoleControllers(resolved);
    return {
      module: PaymentsConsoleModule,
      imports: [...(options.imports ?? [])],
      controllers,
      providers: [
        { provide: CONSOLE_OPTIONS, useValue: resolved },
        GuardCheck,
        {
          provide: ThrottlerSkip,
          useFactory: (modules: ModuleRef) => new ThrottlerSkip(modules, controllers),
          inject: [ModuleRef],
        },
        TrailingSlash,
        ConsoleAnswers,
        { provide: ConsoleAssets, useFactory: () => ConsoleAssets.load() },
        ConsoleInbox,
        ConsoleOverview,
        ConsoleActions,
        PayloadAudit,
      ],
    };
  }
}
