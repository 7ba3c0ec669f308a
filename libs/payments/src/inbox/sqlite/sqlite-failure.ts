import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsErrorCode } from '../../errors/payments-error.js';
import { primaryCode } from './thread/driver.js';

/** An error of the thread, as it is sent to the main thread. */
export interface ThreadFailure {
  readonly code: PaymentsErrorCode;
  readonly message: string;
}

/** What to do about SQLite's primary result codes (https://www.sqlite.org/rescode.html). */
const FIXES: Readonly<Record<number, string>> = {
  5: 'Another connection held the file locked for longer than "busyTimeoutMs": look for a long transaction.',
  8: 'The process needs to write the file and its folder.',
  10: "The file's disk reported an error: read the log of the system.",
  11: 'The file is damaged: restore it from a backup.',
  13: 'Free some space on its disk.',
  14: 'Its folder must exist, and the process must be allowed to write in it.',
  26: 'The file is no SQLite database: give "file" another path.',
};

/** Describes an error without any stored data: SQLite's messages name tables, never values. */
export function toFailure(error: unknown): ThreadFailure {
  if (error instanceof PaymentsError) return { code: error.code, message: error.message };
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
  const fix = FIXES[primaryCode(error) ?? 0];
  return {
    code: 'inbox_unavailable',
    message: `The SQLite inbox failed: ${message}.${fix === undefined ? '' : ` ${fix}`}`,
  };
}

/** The error of a {@link ThreadFailure}. */
export function toError({ code, message }: ThreadFailure): PaymentsError {
  return new PaymentsError(code, message);
}

/** The error of a store that cannot answer. */
export function unavailable(message: string): PaymentsError {
  return new PaymentsError('inbox_unavailable', `The SQLite inbox ${message}`);
}
