import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { systemRuntime } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { basicAuthInvalid, checkedRealm, checkedUsers, parseBasic } from './basic-auth.js';
import type { BasicCredentials } from './basic-auth.js';
import { clientAddress, networksOfClient } from './client-network.js';
import { ConsoleRefusal } from './console-refusal.js';
import type { ConsoleRequest } from './console-request.js';
import { OPERATOR, seenOnly } from './operator-name.js';
import { SignInLimiter } from './sign-in-limiter.js';
import { ThrottledLog } from '../errors/throttled-log.js';

/** What {@link BasicAuthGuard} takes: `users` or `verify`. */
export interface BasicAuthOptions {
  /** Passwords by name. A name has no colon, a password 12 to 200 characters; neither has control characters. */
  users?: Readonly<Record<string, string>>;
  /** Says whether name and password are right, for those that are kept elsewhere. It compares in constant time itself. */
  verify?: (name: string, password: string) => boolean | Promise<boolean>;
  /** What the browser says it wants a password for. Default `Payments console`. */
  realm?: string;
  /** Clock and timers that limit wrong passwords. Default: the machine's. */
  runtime?: PaymentsRuntime;
}

/**
 * Asks for a name and a password with HTTP Basic authentication (RFC 7617). Use it only behind TLS.
 *
 * Passwords are compared in constant time. Guesses are limited per user name over all clients: ten wrong passwords per
 * minute are checked at once; above it each check waits up to 3 seconds, and at most 1,200 per minute are checked.
 * A client that signed in with the same name from the same network (IPv4 address, /48 of IPv6) within 12 hours does not
 * wait. `request.ip` names the client, so configure which proxies the application trusts. Wrong passwords are logged at
 * most once per minute.
 *
 * @example
 * ```ts
 * PaymentsConsoleModule.register({
 *   path: 'ops/payments',
 *   guards: [new BasicAuthGuard({ users: { ops: process.env.CONSOLE_PASSWORD! } })],
 * });
 *
 * // With what Nest injects:
 * @Injectable()
 * class OperatorsOnly extends BasicAuthGuard {
 *   constructor(config: ConfigService) {
 *     super({ users: { ops: config.getOrThrow('CONSOLE_PASSWORD') } });
 *   }
 * }
 * ```
 */
export class BasicAuthGuard implements CanActivate {
  // Private fields: none of it shows where the guard is logged or inspected.
  readonly #key = randomBytes(32);
  readonly #digests: ReadonlyMap<string, Buffer>;
  readonly #verify: BasicAuthOptions['verify'];
  readonly #challenge: string;
  readonly #limiter: SignInLimiter;
  readonly #log: ThrottledLog;

  /** @throws PaymentsError `options_invalid`. */
  constructor(options: BasicAuthOptions) {
    const { users, verify, realm, runtime = systemRuntime } = options ?? {};
    if ((users === undefined) === (verify === undefined)) {
      throw basicAuthInvalid(
        'it needs either "users", passwords by name, or "verify": new BasicAuthGuard({ users: { ops: … } }).',
      );
    }
    if (verify !== undefined && typeof verify !== 'function') {
      throw basicAuthInvalid('"verify" must be a function of name and password.');
    }
    const known = users === undefined ? [] : checkedUsers(users);
    this.#digests = new Map(known.map(([name, password]) => [name, this.#digest(password)]));
    this.#verify = verify;
    this.#challenge = `Basic realm="${checkedRealm(realm)}", charset="UTF-8"`;
    this.#limiter = new SignInLimiter(runtime);
    this.#log = new ThrottledLog(new Logger('BasicAuthGuard'), runtime);
  }

  /** @throws HttpException 401, or 429 if more attempts wait than are checked. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<ConsoleRequest & { [OPERATOR]?: string }>();
    // Express response or Fastify reply.
    const response = http.getResponse<{ header(name: string, value: string): unknown }>();
    const credentials = parseBasic(request.headers.authorization);
    if (credentials === null) {
      response.header('WWW-Authenticate', this.#challenge);
      throw new ConsoleRefusal(401, 'A name and a password are needed.');
    }
    const attempt = await this.#limiter.begin(credentials.name, networksOfClient(request));
    if (attempt === null) {
      this.#log.warn(
        'crowded',
        'Passwords are sent faster than they are checked: somebody guesses. Operators who signed in from their ' +
          'address within 12 hours do not notice; new ones may have to try again.',
      );
      response.header('Retry-After', '1');
      throw new ConsoleRefusal(429, 'Too many attempts to sign in. Try again in a second.');
    }
    let right: boolean | undefined;
    try {
      right = await this.#isRight(credentials);
    } finally {
      attempt.end(right);
    }
    if (!right) {
      // Without the name: some users type the password in its place.
      const from = seenOnly(clientAddress(request));
      this.#log.warn('wrong', `A wrong name or password came from ${from}.`);
      response.header('WWW-Authenticate', this.#challenge);
      throw new ConsoleRefusal(401, 'Name or password is wrong.');
    }
    // Not enumerable, so that no log of the request shows it as a field of the application's.
    Object.defineProperty(request, OPERATOR, { value: credentials.name, configurable: true });
    return true;
  }

  async #isRight({ name, password }: BasicCredentials): Promise<boolean> {
    if (this.#verify !== undefined) {
      // Whoever writes it in JavaScript may answer anything.
      const answer: unknown = await this.#verify(name, password);
      return answer === true;
    }
    const expected = this.#digests.get(name);
    // A name nobody has takes as long.
    const same = timingSafeEqual(this.#digest(password), expected ?? this.#key);
    return same && expected !== undefined;
  }

  /** Of one length, whatever the password's. */
  #digest(password: string): Buffer {
    return createHmac('sha256', this.#key).update(password).digest();
  }
}
