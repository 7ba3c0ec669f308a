import { ModulesContainer } from '@nestjs/core';
import { PaymentsLifecycle } from './payments-lifecycle.js';
import { optionsInvalid } from './errors/options-invalid.js';

type NestModule = ModulesContainer extends Map<string, infer M> ? M : never;

/**
 * Two instances of the module in one application would each have an inbox, a webhook route and every handler.
 *
 * @throws PaymentsError `options_invalid` if the application imports the module more than once. The message
 *   names the importing modules and the fix.
 */
export function assertSingleImport(modules: ModulesContainer): void {
  const all = [...modules.values()];
  const ours = all.filter((module) => module.hasProvider(PaymentsLifecycle));
  if (ours.length < 2) return;
  const importers = ours.flatMap((module) => all.filter((other) => imports(other, module)));
  const names = importers.map(({ metatype }) => metatype.name);
  throw optionsInvalid(
    `it is imported more than once in this application: by ${names.join(' and by ')}. Import it once. Other ` +
      'modules can inject its providers if the importing module exports PaymentsModule, or if it is imported ' +
      'with "isGlobal: true".',
  );
}

/**
 * Whether a module imports another itself. Nest also adds every global module to the imports of every module:
 * after the module's own imports, its core module first. This is not documented by Nest; checked with 11.1.4,
 * 11.2 and 12.5.
 */
function imports(importing: NestModule, imported: NestModule): boolean {
  if (!imported.isGlobal) return importing.imports.has(imported);
  const own = [...importing.imports];
  // Nest's core module is the one that provides the container. Bundlers may rename its class.
  const end = own.findIndex((module) => module.hasProvider(ModulesContainer));
  return (end === -1 ? own : own.slice(0, end)).includes(imported);
}
