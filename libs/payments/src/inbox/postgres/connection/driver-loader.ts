import type pg from 'pg';
import { optionsInvalid } from '../../../errors/options-invalid.js';

/** What the inbox uses of the `pg` package. */
export type Driver = Pick<typeof pg, 'Pool' | 'Client'>;

/**
 * Loads `pg` on first use: it is an optional peer dependency, which an application with another inbox does not install.
 *
 * @throws PaymentsError `options_invalid` if it is not installed.
 */
export async function loadDriver(
  load: () => Promise<unknown> = () => import('pg'),
): Promise<Driver> {
  try {
    const loaded = (await load()) as Driver & { default?: Driver };
    // Before 8.16 it was CommonJS only, whose names may be under `default`.
    return loaded.default ?? loaded;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw optionsInvalid(
      'postgresInbox needs the "pg" package, which is not installed: npm install pg',
    );
  }
}
