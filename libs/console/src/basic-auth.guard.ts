import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { CanActivate, ExecutionContext, OnApplicationShutdown } from '@nestjs/common';
import { ThrottledLog } from 'nestjs-payments';
import { basicAuthInvalid, checkedUsers } from './basic-auth-options.js';
import type { BasicAuthOptions } from './basic-auth-options.js';
import { clientAddress, networksOfClient } from './client-network.js';
import { ConsoleException } from './console-exception.filter.js';
import { systemRuntime } from './console-options.js';
import type { ConsolePermission } from './console-options.js';
import type { ConsoleRequest } from './console-request.js';
import { OPERATOR, printable } from './operator-name.js';
import type { SignedIn } from './operator-name.js';
import { SignInLimiter } from './sign-in-limiter.js';

const CHALLENGE = 'Basic realm="Payments console", charset="UTF-8"';

interface BasicCredentials {
  readonly name: string;
  readonly password: string;
}

/**
 * Requires a name and a password with HTTP Basic authentication (RFC 7617). Use this guard only behind TLS.
 *
 * Passwords are compared in constant time. The guard limits how many passwords it checks for one user name, from all
 * clients together. Up to ten wrong passwords per minute cause no delay. After more wrong passwords, each check waits
 * up to 3 seconds, and the guard checks at most 1,200 passwords per minute. At most 120 of these passwords may come
 * from networks that have sent ten or more wrong passwords, for example from the network of a proxy. A client does not
 * wait if its network (IPv4 address, or /48 of IPv6) signed in with this user name within the last 12 hours.
 * `request.ip` identifies the client, so configure which proxies the application trusts. Wrong passwords are logged at
 * most once per minute.
 *
 * @example
 * ```ts
 * PaymentsConsoleModule.register({
 *   path: 'ops/payments',
 *   guards: [new BasicAuthGuard({ users: { ops: process.env.CONSOLE_PASSWORD! } })],
 * });
 *
 * // Support staff may look, but not act:
 * new BasicAuthGuard({ users: { ops: opsPassword, support: { password: supportPassword, may: 'read' } } });
 *
 * // A guard that injects the configuration:
 * @Injectable()
 * class OperatorsOnly extends BasicAuthGuard {
 *   constructor(config: ConfigService) {
 *     super({ users: { ops: config.getOrThrow('CONSOLE_PASSWORD') } });
 *   }
 * }
 * ```
 */
export class BasicAuthGuard implements CanActivate, OnApplicationShutdown {
  // Private fields, so that a log or an inspection of the guard shows no secret.
  readonly #key = randomBytes(32);
  readonly #users: ReadonlyMap<string, { digest: Buffer; may: ConsolePermission }>;
  readonly #verify: BasicAuthOptions['verify'];
  readonly #limiter: SignInLimiter;
  readonly #log: ThrottledLog;

  /** @throws PaymentsError `options_invalid` if the options are not valid. */
  constructor(options: BasicAuthOptions) {
    const { users, verify, runtime = systemRuntime } = options ?? {};
    if ((users === undefined) === (verify === undefined)) {
      throw basicAuthInvalid(
        'give either "users" (passwords by name) or "verify": new BasicAuthGuard({ users: { ops: … } }).',
      );
    }
    if (verify !== undefined && typeof verify !== 'function') {
      throw basicAuthInvalid('"verify" must be a function of name and password.');
    }
    const known = users === undefined ? [] : checkedUsers(users);
    this.#users = new Map(
      known.map(({ name, password, may }) => [name, { digest: this.#digest(password), may }]),
    );
    this.#verify = verify;
    this.#limiter = new SignInLimiter(runtime);
    this.#log = new ThrottledLog(new Logger('BasicAuthGuard'), runtime);
  }

  /** @throws HttpException 401 if the name or password is missing or wrong, or 429 if too many attempts wait. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<ConsoleRequest & { [OPERATOR]?: SignedIn }>();
    // The response of Express or the reply of Fastify.
    const response = http.getResponse<{ header(name: string, value: string): unknown }>();
    const credentials = parseBasic(request.headers.authorization);
    if (credentials === null) {
      response.header('WWW-Authenticate', CHALLENGE);
      throw new ConsoleException(401, 'A name and a password are required.');
    }
    const attempt = await this.#limiter.admit(credentials.name, networksOfClient(request));
    if (attempt === null) {
      this.#log.warn(
        'flood',
        'Passwords arrive faster than the console may check them: somebody may be guessing passwords. Operators who ' +
          'signed in from their present network in the last 12 hours are not affected. Other operators may have to try again.',
      );
      response.header('Retry-After', '1');
      throw new ConsoleException(429, 'Too many attempts to sign in. Try again in a second.');
    }
    let may: ConsolePermission | null | undefined;
    try {
      may = await this.#permissionOf(credentials);
    } finally {
      attempt.end(may === undefined ? undefined : may !== null);
    }
    if (may === null) {
      // The log line has no name, because some users type their password into the field of the name.
      const from = printable(clientAddress(request));
      this.#log.warn('wrong', `A wrong name or password came from ${from}.`);
      response.header('WWW-Authenticate', CHALLENGE);
      throw new ConsoleException(401, 'Name or password is wrong.');
    }
    // Not enumerable, so that a log of the request does not show it as a field of the application.
    const value: SignedIn = { name: credentials.name, may };
    Object.defineProperty(request, OPERATOR, { value, configurable: true });
    return true;
  }

  /** Logs how many warnings were suppressed because of their limit per minute. */
  onApplicationShutdown(): void {
    this.#log.flush();
  }

  /** Returns what the user may do; `null` if the name or the password is wrong. */
  async #permissionOf({ name, password }: BasicCredentials): Promise<ConsolePermission | null> {
    if (this.#verify !== undefined) {
      // A function in JavaScript may return any value.
      const result: unknown = await this.#verify(name, password);
      if (result === 'read') return 'read';
      return result === true || result === 'act' ? 'act' : null;
    }
    const user = this.#users.get(name);
    // Compare for unknown names too, so that their check takes the same time.
    const same = timingSafeEqual(this.#digest(password), user?.digest ?? this.#key);
    return same && user !== undefined ? user.may : null;
  }

  /** Returns a digest, which has the same length for passwords of any length, as timingSafeEqual() requires. */
  #digest(password: string): Buffer {
    return createHmac('sha256', this.#key).update(password).digest();
  }
}

/**
 * Reads the name and the password from an `Authorization` header, in Unicode's normalization form C. Returns `null` if
 * the header does not contain both.
 */
function parseBasic(header: string | undefined): BasicCredentials | null {
  const [, encoded] = /^basic +([\w+/=-]{1,2000})$/i.exec(header?.trim() ?? '') ?? [];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8').normalize('NFC');
  const colon = text.indexOf(':');
  if (colon < 1) return null;
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}
