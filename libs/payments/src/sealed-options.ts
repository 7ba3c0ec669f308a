import type { FactoryProvider, Provider, ValueProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { PaymentsError } from './errors/payments-error.js';
import { optionsInvalid } from './errors/option-checks.js';
import type { PaymentsModuleOptions } from './payments-options.js';
import { importersOfSeveral } from './nest-internals.js';
import { PaymentsLifecycle } from './payments-lifecycle.js';

/** Wraps the module's options in Nest's container, so that `JSON.stringify` and `util.inspect` show no secret. */
export class SealedOptions {
  readonly #options: PaymentsModuleOptions;

  constructor(options: PaymentsModuleOptions) {
    this.#options = options;
  }

  /** Returns the options. */
  open(): PaymentsModuleOptions {
    return this.#options;
  }
}

/**
 * Replaces the provider of the options that Nest's module builder creates. The new provider wraps the options in
 * {@link SealedOptions}, after a check that the application imports the module only once.
 */
export function sealedProvider(provider: Provider): Provider {
  const { provide, inject = [], useFactory } = provider as FactoryProvider<PaymentsModuleOptions>;
  // The new provider is a factory, even if the options are a value: Nest prints values with the definition of the module.
  const { useValue } = provider as ValueProvider<PaymentsModuleOptions>;
  return {
    provide,
    inject: [ModulesContainer, ...inject],
    useFactory: async (modules: ModulesContainer, ...dependencies: unknown[]) => {
      assertSingleImport(modules);
      return new SealedOptions(
        useFactory ? await createOptions(useFactory, dependencies) : useValue,
      );
    },
  };
}

/**
 * Rejects a second import: each instance of the module would have an inbox, a webhook route and every handler of its
 * own.
 *
 * @throws PaymentsError `options_invalid` if the application imports the module more than once. The message
 *   names the importing modules and the fix.
 */
function assertSingleImport(modules: ModulesContainer): void {
  const importers = importersOfSeveral(modules, PaymentsLifecycle);
  if (importers === undefined) return;
  throw optionsInvalid(
    `it is imported more than once in this application: by ${importers.join(' and by ')}. Import it once. Other ` +
      'modules can inject its providers if the importing module exports PaymentsModule, or if it is imported ' +
      'with "isGlobal: true".',
  );
}

/** @throws PaymentsError `options_invalid` with the error of the application's factory as its `cause`. */
async function createOptions(
  useFactory: FactoryProvider<PaymentsModuleOptions>['useFactory'],
  dependencies: unknown[],
): Promise<PaymentsModuleOptions> {
  let options: PaymentsModuleOptions | null | undefined;
  try {
    options = await useFactory(...dependencies);
  } catch (error) {
    if (error instanceof PaymentsError && error.code === 'options_invalid') throw error;
    // The message of another error may contain a secret, so it is in `cause` only.
    throw optionsInvalid(
      'the options factory of PaymentsModule.forRootAsync() failed. The cause of this error is the error of the factory.',
      { cause: error },
    );
  }
  if (options !== undefined && options !== null) return options;
  throw optionsInvalid(
    'the options factory of PaymentsModule.forRootAsync() returned nothing. Return the options from it.',
  );
}
