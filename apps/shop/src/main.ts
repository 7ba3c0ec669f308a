import { existsSync } from 'node:fs';
import { PaymentsError } from 'nestjs-payments';
import { readShopEnvironment, SettingsError } from './shop-config.js';
import { startShop } from './start-shop.js';

// The file `.env` is for development. Variables that are already set keep their values.
if (existsSync('.env')) process.loadEnvFile('.env');

try {
  await startShop(readShopEnvironment(process.env));
} catch (error) {
  for (const problem of problemsOf(error)) process.stderr.write(`shop: ${problem}\n`);
  process.exitCode = 1;
}

/** Returns one line for each problem that the operator can fix. Other errors are shown with their stack. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof SettingsError) return error.problems;
  if (error instanceof PaymentsError) return [error.message];
  if (!(error instanceof Error)) return [String(error)];
  if ('code' in error && error.code === 'EADDRINUSE') {
    const { port } = error as { port?: number };
    return [
      `port ${port} is in use. Stop the process that listens on it, or set PORT (0 takes a free port)`,
    ];
  }
  // The message of an error of the operating system is enough.
  return ['syscall' in error ? error.message : (error.stack ?? error.message)];
}
