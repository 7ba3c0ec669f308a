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
  if ('code' in error && error.code === 'EADDRINUSE') {
    const { port } = error as { port?: number };
    return [
      `port ${port} is in use. Stop the process that listens on it, or set PORT (0 takes a free one)`,
    ];
  }
  // The message of an operating system's error is enough.
  return ['syscall' in error ? error.message : (error.stack ?? error.message)];
}
