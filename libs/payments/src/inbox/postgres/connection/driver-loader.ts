import type pg from 'pg';
import { optionsInvalid } from '../../../payments.validation.js';

/** What is used of the `pg` package. */
export type Driver = Pick<typeof pg, 'Pool' | 'Client'>;

/**
 * Loads `pg` when it is needed and not before: it is an optional peer, and an application on another inbox
 * hasn't got it.
 *
 * @throws PaymentsError `options_invalid` where it is not installed.
 */
export async function loadDriver(
  load: () => Promise<unknown> = () => import('pg'),
): Promise<Driver> {
  try {
    const loaded = (await load()) as Driver & { default?: Driver };
    // Before 8.16 it was CommonJS alone, whose names may hide under `default`.
    return loaded.default ?? loaded;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw optionsInvalid(
      'postgresInbox needs the "pg" package, which is not installed: npm install pg',
    );
  }
}
