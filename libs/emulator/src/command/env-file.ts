import { readFile, writeFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { isLoopback } from '../companies/webhook-url.js';
import type { Setting } from './application-settings.js';
import { assignment } from './application-settings.js';

/** The comment above the lines that the emulator writes. The next start of the emulator replaces these lines. */
const COMMENT =
  '# Written by payments-emulator --save-env, which replaces these lines at each start:';

/**
 * Saves settings in a `.env` file. Replaces the lines that an earlier start wrote, and keeps all other lines. Only the
 * owner of a new file can read it.
 *
 * @throws Error if another line sets one of the settings to another value. In this case, the function does not change
 *   the file. A line above the emulator's lines may set a setting to an empty value.
 */
export async function saveEnvFile(file: string, settings: readonly Setting[]): Promise<void> {
  const before = await read(file);
  const lines = settings.map((setting) => {
    const line = assignment(setting);
    if (line !== undefined) return line;
    throw new Error(
      `${file} is unchanged, because the value of ${setting[0]} cannot be quoted in a .env file. Choose a value without line breaks, quotes and backslashes`,
    );
  });
  const { head, tail } = withoutOwnLines(before, settings);
  // If several lines set a variable, the last one counts. Therefore a line above the emulator's lines that sets an
  // empty value, as in a copy of .env.example, has no effect.
  const above = Object.entries(parseEnv(head)).filter(([, value]) => value !== '');
  const other = { ...Object.fromEntries(above), ...parseEnv(tail) };
  const conflicts = settings.filter(([name, value]) => (other[name] ?? value) !== value);
  if (conflicts.length > 0) {
    throw new Error(
      `${file} is unchanged: it already sets ${conflicts.map(([name]) => name).join(', ')} to other values. Remove these lines from the file, or save to another file`,
    );
  }
  const after = `${head}${[COMMENT, ...lines].join('\n')}\n${tail}`;
  if (after !== before) await writeFile(file, after, { mode: 0o600 });
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/**
 * Returns the text of a `.env` file before and after the lines that the emulator wrote. If there are no such lines,
 * returns the text before and after the place where the emulator will write them.
 */
function withoutOwnLines(
  text: string,
  settings: readonly Setting[],
): { head: string; tail: string } {
  const names = settings.map(([name]) => name).join('|');
  const own = new RegExp(`^${COMMENT}\\r?\\n(?:(?:${names})=.*(?:\\r?\\n|$))*`, 'm').exec(text);
  // If the user has changed the lines to the address of another service, the emulator does not replace them.
  if (own && isEmulators(parseEnv(own[0])['PAYMENTS_BASE_URL'])) {
    return { head: text.slice(0, own.index), tail: text.slice(own.index + own[0].length) };
  }
  const gap = text === '' ? '' : text.endsWith('\n') ? '\n' : '\n\n';
  return { head: `${text}${gap}`, tail: '' };
}

function isEmulators(baseUrl: string | undefined): boolean {
  return baseUrl === undefined || isLoopback(URL.parse(baseUrl)?.hostname ?? '');
}
