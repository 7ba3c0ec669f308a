import type { ModulesContainer } from '@nestjs/core';
import { optionsInvalid } from './errors/options-invalid.js';
import { importersOfSeveral } from './nest-internals.js';
import { PaymentsLifecycle } from './payments-lifecycle.js';

/**
 * Two instances of the module in one application would each have an inbox, a webhook route and every handler.
 *
 * @throws PaymentsError `options_invalid` if the application imports the module more than once. The message
 *   names the importing modules and the fix.
 */
export function assertSingleImport(modules: ModulesContainer): void {
  const importers = importersOfSeveral(modules, PaymentsLifecycle);
  if (importers === undefined) return;
  throw optionsInvalid(
    `it is imported more than once in this application: by ${importers.join(' and by ')}. Import it once. Other ` +
      'modules can inject its providers if the importing module exports PaymentsModule, or if it is imported ' +
      'with "isGlobal: true".',
  );
}
