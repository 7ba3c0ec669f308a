import type { FactoryProvider, Provider, ValueProvider } from '@nestjs/common';
import type { PaymentsModuleOptions } from './payments.options.js';

/** The module's options as the container holds them: they carry secrets, and whoever prints it sees none. */
export class SealedOptions {
  readonly #options: PaymentsModuleOptions;

  constructor(options: PaymentsModuleOptions) {
    this.#options = options;
  }

  open(): PaymentsModuleOptions {
    return this.#options;
  }
}

/** Has a provider of the raw options, as Nest's builder makes them, provide them sealed. */
export function sealing(provider: Provider): Provider {
  const { provide, inject, useFactory } = provider as FactoryProvider<PaymentsModuleOptions>;
  if (useFactory !== undefined) {
    return {
      provide,
      ...(inject && { inject }),
      useFactory: async (...dependencies: unknown[]) =>
        new SealedOptions(await useFactory(...dependencies)),
    };
  }
  const { useValue } = provider as ValueProvider<PaymentsModuleOptions>;
  // A factory, as a value would be shown with the module's definition.
  return { provide, useFactory: () => new SealedOptions(useValue) };
}
