import { PaymentsError } from 'nestjs-payments';
import type { ConsoleRuntime } from './console-options.js';

/** Options of {@link BasicAuthGuard}. Set either `users` or `verify`. */
export interface BasicAuthOptions {
  /**
   * Passwords by user name. A name must have 1 to 100 characters and no colon. A password must have 12 to 200
   * characters. Neither the name nor the password may contain control characters. Required, unless `verify` is set.
   */
  users?: Readonly<Record<string, string>>;
  /**
   * Verifies names and passwords that are stored elsewhere. The function must compare in constant time. Required,
   * unless `users` is set.
   */
  verify?: (name: string, password: string) => boolean | Promise<boolean>;
  /** Clock and timers for the limit of wrong passwords. Default: those of the system. */
  runtime?: ConsoleRuntime;
}

const CONTROL_CHARACTER = /\p{Cc}/u;
const PASSWORD_LENGTH = { min: 12, max: 200 };

/** Returns names and passwords in Unicode's form C. Throws `options_invalid`; no message contains a password. */
export function checkedUsers(
  users: Readonly<Record<string, string>>,
): [name: string, password: string][] {
  const entries = typeof users === 'object' && users !== null ? Object.entries(users) : [];
  if (entries.length === 0) {
    throw basicAuthInvalid('"users" must contain a password for at least one name.');
  }
  return entries.map(([name, password]) => {
    if (name === '' || name.length > 100 || name.includes(':') || CONTROL_CHARACTER.test(name)) {
      throw basicAuthInvalid(
        'a name in "users" must have 1 to 100 characters, none of them a colon or a control character.',
      );
    }
    const { min, max } = PASSWORD_LENGTH;
    if (typeof password !== 'string' || password.length < min || password.length > max) {
      throw basicAuthInvalid(
        `the password of "${name}" must have ${min} to ${max} characters. Is its environment variable set?`,
      );
    }
    if (CONTROL_CHARACTER.test(password)) {
      throw basicAuthInvalid(
        `the password of "${name}" contains a control character, perhaps a line end. Remove this character, because no browser can send it.`,
      );
    }
    return [name.normalize('NFC'), password.normalize('NFC')];
  });
}

export function basicAuthInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `BasicAuthGuard: ${message}`);
}
