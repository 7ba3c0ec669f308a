import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { optionsInvalid } from '../../../errors/option-checks.js';

/** The file name of the compiled entry of the thread. */
const ENTRY = 'sqlite-thread.js';

const FIX =
  'Bundle "nestjs-payments/sqlite/thread" as a second entry and pass the path of its output as ' +
  '"sqliteInbox.threadPath", or exclude nestjs-payments from the bundle.';

/**
 * Finds the file that the worker thread runs: the `threadPath` option, or the entry in this package.
 *
 * @throws PaymentsError `options_invalid` if the file does not exist, or a bundler merged the entry into another file.
 */
export async function findThreadFile(threadPath: string | undefined): Promise<string> {
  const path = threadPath ?? (await ownEntry());
  if (existsSync(path)) return path;
  throw optionsInvalid(`the worker thread of the SQLite inbox does not exist: ${path}. ${FIX}`);
}

/** Defined only if a test runner or a bundler has compiled this file to CommonJS. */
declare const __filename: string | undefined;

async function ownEntry(): Promise<string> {
  // Jest in CommonJS cannot import the entry, because the entry is an ES module; but the entry is next to this file.
  const neighbor = typeof __filename === 'string' ? join(dirname(__filename), ENTRY) : undefined;
  if (neighbor !== undefined && existsSync(neighbor)) return neighbor;
  const { threadUrl } = await import('./sqlite-thread.js');
  return entryPath(threadUrl);
}

/**
 * The path of the entry, from its URL.
 *
 * @throws PaymentsError `options_invalid` if a bundler merged the entry into another file.
 */
export function entryPath(url: string | undefined): string {
  const path = url === undefined ? undefined : fileURLToPath(url);
  if (path !== undefined && basename(path) === ENTRY) return path;
  throw optionsInvalid(
    `a bundler merged the worker thread of the SQLite inbox into ${path === undefined ? 'another file' : basename(path)}. ${FIX}`,
  );
}
