import type { OnModuleInit, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';

/*
 * Injection token and metadata key of @nestjs/throttler, checked with 5.2.0 and 6.7.1. The package does not export them,
 * and its decorator SkipThrottle() would make it a dependency.
 */
const OPTIONS = 'THROTTLER:MODULE_OPTIONS';
const SKIP = 'THROTTLER:SKIP';

type Throttlers = readonly { readonly name?: string }[];

/**
 * Exempts the console's controllers from every throttler of the application. An open console asks for the numbers
 * every 2 seconds, which exceeds most limits.
 */
export class ThrottlerSkip implements OnModuleInit {
  constructor(
    private readonly modules: ModuleRef,
    private readonly controllers: readonly Type[],
  ) {}

  /** By now, the options of `ThrottlerModule.forRootAsync()` are known. */
  onModuleInit(): void {
    for (const { name = 'default' } of this.#throttlers()) {
      for (const controller of this.controllers) {
        Reflect.defineMetadata(SKIP + name, true, controller);
      }
    }
  }

  #throttlers(): Throttlers {
    try {
      return this.modules
        .get<Throttlers | { throttlers: Throttlers }>(OPTIONS, { strict: false, each: true })
        .flatMap((options) => ('throttlers' in options ? options.throttlers : options));
    } catch {
      // The application has no throttler.
      return [];
    }
  }
}
