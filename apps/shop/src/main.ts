import { existsSync } from 'node:fs';
import { PaymentsError } from 'nestjs-payments';
import { readShopEnvironment, SettingsError } from './shop.config.js';
import { startShop } from './shop.js';

// For development; what the environment sets already stays as it is.
if (existsSync('.env')) process.loadEnvFile('.env');

try {
  await startShop(readShopEnvironment(process.env));
} catch (error) {
  process.stderr.write(
    problems(error)
      .map((problem) => `shop: ${problem}\n`)
      .join(''),
  );
  process.exitCode = 1;
}

/** A line for everything the operator has to mend. A stack is for what only a programmer can. */
function problems(error: unknown): readonly string[] {
  if (error instanceof SettingsError) return error.problems;
  if (error instanceof PaymentsError) return [error.message];
  if (!(error instanceof Error)) return [String(error)];
  // An error of the operating system, such as a port that is taken, says all there is to say.
  return ['syscall' in error ? error.message : (error.stack ?? error.message)];
}
