import { readFile, writeFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { isLoopback } from '../companies/webhook-url.js';
import type { Setting } from './application-settings.js';
import { assignment } from './application-settings.js';

/** The comment above the lines that the emulator writes. The next start of the emulator replaces these lines. */
const COMMENT =
  '# Written by payments-emulator --save-env, which replaces these lines at each start:';

/**
 * Saves settings in a `.env` file. Replaces the lines of an earlier start and keeps all other lines. A new file is readable
 * by its owner only.
 *
 * @throws Error if another line sets one of the settings to another value. In this case, the function does not change
 *   the file. An empty value above the lines of the emulator is allowed.
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
  // The last line of a variable counts, so an empty line above, as in a copy of .env.example, sets nothing.
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
 * Returns the text before and after the emulator's lines. If there are no such lines, returns the text before and after
 * the place where they will be written.
 */
function withoutOwnLines(
  text: string,
  settings: readonly Setting[],
): { head: string; tail: string } {
  const names = settings.map(([name]) => name).join('|');
  const own = new RegExp(`^${COMMENT}\\r?\\n(?:(?:${names})=.*(?:\\r?\\n|$))*`, 'm').exec(text);
  // Lines that were changed to point to another service belong to the user and are kept.
  if (own && isEmulators(parseEnv(own[0])['PAYMENTS_BASE_URL'])) {
    return { head: text.slice(0, own.index), tail: text.slice(own.index + own[0].length) };
  }
  const gap = text === '' ? '' : text.endsWith('\n') ? '\n' : '\n\n';
  return { head: `${text}${gap}`, tail: '' };
}

function isEmulators(baseUrl: string | undefined): boolean {
  return baseUrl === undefined || isLoopback(URL.parse(baseUrl)?.hostname ?? '');
}
