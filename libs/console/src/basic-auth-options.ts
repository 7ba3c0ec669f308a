import { PaymentsError } from 'nestjs-payments';
import type { ConsolePermission, ConsoleRuntime } from './console-options.js';

/** Options of {@link BasicAuthGuard}. Set either `users` or `verify`. */
export interface BasicAuthOptions {
  /**
   * Passwords by user name. A name must have 1 to 100 characters and no colon. A password must have 12 to 200
   * characters. Neither the name nor the password may contain control characters. `{ password, may: 'read' }` lets a
   * user look, but not act; a user whose value is only a password may act. Required, unless `verify` is set.
   */
  users?: Readonly<Record<string, string | { password: string; may: ConsolePermission }>>;
  /**
   * Verifies a name and a password that another system stores, for example a database. The function must compare in
   * constant time. It returns `'act'` or `true` for a user who may act, `'read'` for a user who may only look, and
   * `false` for a wrong name or password. Required, unless `users` is set.
   */
  verify?: (
    name: string,
    password: string,
  ) => boolean | ConsolePermission | Promise<boolean | ConsolePermission>;
  /**
   * Clock and timers that limit how many passwords the guard checks. Default: the clock and the timers of the system.
   */
  runtime?: ConsoleRuntime;
}

const CONTROL_CHARACTER = /\p{Cc}/u;
const PASSWORD_LENGTH = { min: 12, max: 200 };

/**
 * Checks the option `users`, and returns the names and passwords in Unicode's normalization form C. Throws
 * `options_invalid`. No message contains a password.
 */
export function checkedUsers(
  users: NonNullable<BasicAuthOptions['users']>,
): { name: string; password: string; may: ConsolePermission }[] {
  const entries = typeof users === 'object' && users !== null ? Object.entries(users) : [];
  if (entries.length === 0) {
    throw basicAuthInvalid('"users" must contain a password for at least one name.');
  }
  return entries.map(([name, user]) => {
    const { password, may } =
      typeof user === 'object' && user !== null ? user : { password: user, may: 'act' };
    if (name === '' || name.length > 100 || name.includes(':') || CONTROL_CHARACTER.test(name)) {
      throw basicAuthInvalid(
        'a name in "users" must have 1 to 100 characters, none of them a colon or a control character.',
      );
    }
    const { min, max } = PASSWORD_LENGTH;
    if (typeof password !== 'string' || password.length < min || password.length > max) {
      throw basicAuthInvalid(
        `the password of "${name}" must have ${min} to ${max} characters. If an environment variable contains the password, check that this variable is set.`,
      );
    }
    if (CONTROL_CHARACTER.test(password)) {
      throw basicAuthInvalid(
        `the password of "${name}" contains a control character, perhaps a line break. Remove this character, because no browser can send it.`,
      );
    }
    if (may !== 'read' && may !== 'act') {
      throw basicAuthInvalid(`"may" of "${name}" must be 'read' or 'act'.`);
    }
    return { name: name.normalize('NFC'), password: password.normalize('NFC'), may };
  });
}

export function basicAuthInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `BasicAuthGuard: ${message}`);
}
