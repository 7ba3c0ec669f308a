import { PaymentsError } from '../payments.errors.js';

/** What a client sent. */
export interface BasicCredentials {
  readonly name: string;
  readonly password: string;
}

const CONTROL = /\p{Cc}/u;
const PASSWORD = { min: 12, max: 200 };

/** Name and password of an `Authorization` header; `null` where it holds none. Both in Unicode's form C. */
export function parseBasic(header: string | undefined): BasicCredentials | null {
  const [, encoded] = /^basic +([\w+/=-]{1,2000})$/i.exec(header?.trim() ?? '') ?? [];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8').normalize('NFC');
  const colon = text.indexOf(':');
  if (colon < 1) return null;
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** @throws PaymentsError `options_invalid`; no message holds a password. */
export function checkedUsers(
  users: Readonly<Record<string, string>>,
): [name: string, password: string][] {
  const entries = typeof users === 'object' && users !== null ? Object.entries(users) : [];
  if (entries.length === 0) {
    throw basicAuthInvalid('"users" must hold a password for at least one name.');
  }
  return entries.map(([name, password]) => {
    if (name === '' || name.length > 100 || name.includes(':') || CONTROL.test(name)) {
      throw basicAuthInvalid(
        'a name in "users" must have 1 to 100 characters, none of them a colon or a control character.',
      );
    }
    const { min, max } = PASSWORD;
    if (typeof password !== 'string' || password.length < min || password.length > max) {
      throw basicAuthInvalid(
        `the password of "${name}" must have ${min} to ${max} characters. Is what it is read from set?`,
      );
    }
    if (CONTROL.test(password)) {
      throw basicAuthInvalid(
        `the password of "${name}" has a control character, a line end perhaps, which no browser can send.`,
      );
    }
    return [name.normalize('NFC'), password.normalize('NFC')];
  });
}

/** @throws PaymentsError `options_invalid`. */
export function checkedRealm(realm: unknown = 'Payments console'): string {
  if (typeof realm !== 'string' || !/^[\x20\x21\x23-\x5B\x5D-\x7E]{1,100}$/.test(realm)) {
    throw basicAuthInvalid(
      '"realm" must be 1 to 100 characters of ASCII, without quotes and backslashes.',
    );
  }
  return realm;
}

/** The error of an option of the guard that is missing or wrong. */
export function basicAuthInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `BasicAuthGuard: ${message}`);
}
