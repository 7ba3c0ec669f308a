import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsErrorCode } from '../../errors/payments-error.js';

/** An error of the thread, in the form in which the thread sends it to the main thread. */
export interface ThreadFailure {
  readonly code: PaymentsErrorCode;
  readonly message: string;
}

/** The fix for each of SQLite's primary result codes (https://www.sqlite.org/rescode.html). */
const FIXES: Readonly<Record<number, string>> = {
  5: 'Another connection held the file locked for longer than "busyTimeoutMs": look for a long transaction.',
  8: 'The process needs to write the file and its folder.',
  10: "The file's disk reported an error: read the log of the system.",
  11: 'The file is damaged: restore it from a backup.',
  13: 'Free some space on its disk.',
  14: 'Its folder must exist, and the process must be allowed to write in it.',
  26: 'The file is no SQLite database: give "file" another path.',
};

/** SQLite's primary result code (https://www.sqlite.org/rescode.html); `undefined` for other errors. */
export function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** Whether a statement failed because another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === 5;
}

/** Describes an error without any stored data: SQLite's messages contain names of tables, never values. */
export function toFailure(error: unknown): ThreadFailure {
  if (error instanceof PaymentsError) return { code: error.code, message: error.message };
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
  const fix = FIXES[primaryCode(error) ?? 0];
  return {
    code: 'inbox_unavailable',
    message: `The SQLite inbox failed: ${message}.${fix === undefined ? '' : ` ${fix}`}`,
  };
}

/** Creates the error that a {@link ThreadFailure} describes. */
export function toError({ code, message }: ThreadFailure): PaymentsError {
  return new PaymentsError(code, message);
}

/** Creates an `inbox_unavailable` error; `message` continues "The SQLite inbox ". */
export function unavailable(message: string): PaymentsError {
  return new PaymentsError('inbox_unavailable', `The SQLite inbox ${message}`);
}
