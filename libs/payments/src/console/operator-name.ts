import type { PaymentsConsoleOptions } from './console-options.js';
import type { ConsoleRequest } from './console-request.js';

const LENGTH = 100;
/** Claims of `request.user` in the order they name a person well. */
const CLAIMS = ['username', 'email', 'sub', 'id', 'name'] as const;
/** Control and format characters, line ends, halves of a character: what forges a line of a log, or turns it round. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** Where `BasicAuthGuard` leaves the name it let in; a symbol, so that nothing sent can stand there. */
export const OPERATOR = Symbol('PAYMENTS_CONSOLE_OPERATOR');

/** The operator's name, fit for a log; `null` where nobody knows it. */
export async function operatorName(
  request: ConsoleRequest,
  who?: PaymentsConsoleOptions['who'],
): Promise<string | null> {
  const name = who === undefined ? knownName(request) : await who(request);
  if (typeof name !== 'string' && typeof name !== 'number') return null;
  const cleaned = seenOnly(String(name)).trim();
  return cleaned === '' ? null : Array.from(cleaned).slice(0, LENGTH).join('');
}

/** A text on one line, without what cannot be seen. */
export function seenOnly(text: string): string {
  return text.replace(UNSEEN, ' ');
}

function knownName(request: ConsoleRequest): unknown {
  const admitted = (request as { [OPERATOR]?: unknown })[OPERATOR];
  if (admitted !== undefined) return admitted;
  const { user } = request;
  if (typeof user !== 'object' || user === null) return user;
  const claims = user as Readonly<Record<string, unknown>>;
  return CLAIMS.map((claim) => claims[claim]).find(
    (value) => typeof value === 'number' || (typeof value === 'string' && value.trim() !== ''),
  );
}
