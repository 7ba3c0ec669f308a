import type { ConsolePermission, PaymentsConsoleOptions } from './console-options.js';
import type { ConsoleRequest } from './console-request.js';

const MAX_LENGTH = 100;
/** Fields of `request.user` that may contain the operator's name, in order of preference. */
const CLAIMS = ['username', 'email', 'sub', 'id', 'name'] as const;
/** Control and format characters, line ends and lone surrogates, which can forge a log line or reverse its text. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/**
 * `BasicAuthGuard` stores the accepted user under this key of the request. A client cannot set the key, because the key
 * is a symbol.
 */
export const OPERATOR = Symbol('PAYMENTS_CONSOLE_OPERATOR');

/** A user that `BasicAuthGuard` accepted. */
export interface SignedIn {
  readonly name: string;
  readonly may: ConsolePermission;
}

const signedIn = (request: ConsoleRequest) => (request as { [OPERATOR]?: SignedIn })[OPERATOR];

/** Returns `act` only if neither `BasicAuthGuard` nor the option `may` limits the operator to `read`. */
export async function permissionOf(
  request: ConsoleRequest,
  may?: PaymentsConsoleOptions['may'],
): Promise<ConsolePermission> {
  const permissions = [
    signedIn(request)?.may ?? 'act',
    may === undefined ? 'act' : await may(request),
  ];
  return permissions.every((one) => one === 'act') ? 'act' : 'read';
}

/** Returns the operator's name, safe to log; `null` if the name is not known. */
export async function operatorName(
  request: ConsoleRequest,
  who?: PaymentsConsoleOptions['who'],
): Promise<string | null> {
  const name = who === undefined ? knownName(request) : await who(request);
  if (typeof name !== 'string' && typeof name !== 'number') return null;
  const cleaned = printable(String(name)).trim();
  return cleaned === '' ? null : Array.from(cleaned).slice(0, MAX_LENGTH).join('');
}

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, ' ');
}

function knownName(request: ConsoleRequest): unknown {
  const accepted = signedIn(request);
  if (accepted !== undefined) return accepted.name;
  const { user } = request;
  if (typeof user !== 'object' || user === null) return user;
  const claims = user as Readonly<Record<string, unknown>>;
  return CLAIMS.map((claim) => claims[claim]).find(
    (value) => typeof value === 'number' || (typeof value === 'string' && value.trim() !== ''),
  );
}
