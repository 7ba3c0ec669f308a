import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { systemRuntime } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { AttemptLimiter } from './attempt.limiter.js';
import { basicAuthInvalid, checkedRealm, checkedUsers, parseBasic } from './basic-auth.js';
import type { BasicCredentials } from './basic-auth.js';
import { networkOf } from './client.network.js';
import { ConsoleRefusal } from './console.refusal.js';
import type { ConsoleRequest } from './console.request.js';
import { OPERATOR, seenOnly } from './operator.name.js';
import { ThrottledLog } from '../errors/throttled-log.js';

/** What {@link BasicAuthGuard} takes: `users` or `verify`. */
export interface BasicAuthOptions {
  /** Passwords by name. A name has no colon, a password 12 to 200 characters; neither has control characters. */
  users?: Readonly<Record<string, string>>;
  /** Says whether name and password are right, for those that are kept elsewhere. It compares in constant time itself. */
  verify?: (name: string, password: string) => boolean | Promise<boolean>;
  /** What the browser says it wants a password for. Default `Payments console`. */
  realm?: string;
  /** The clock that ten wrong passwords a minute are counted by. Default: the machine's. */
  runtime?: PaymentsRuntime;
}

/**
 * Asks for a name and a password with HTTP Basic authentication (RFC 7617): the least a console needs. Passwords are
 * compared in constant time, and a client that gave ten wrong ones within a minute is answered 429 until it is over;
 * which client it is, `request.ip` says (of IPv6, its /64), so tell the application which proxies to trust. Wrong
 * ones are told in the log, one line a minute. Only behind TLS.
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
  readonly #limiter: AttemptLimiter;
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
    this.#limiter = new AttemptLimiter(runtime);
    this.#log = new ThrottledLog(new Logger('BasicAuthGuard'), runtime);
  }

  /** @throws HttpException 401, or 429 after too many wrong passwords. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<ConsoleRequest & { [OPERATOR]?: string }>();
    // Of Express or Fastify.
    const response = http.getResponse<{ header(name: string, value: string): unknown }>();
    const credentials = parseBasic(request.headers.authorization);
    if (credentials === null) {
      response.header('WWW-Authenticate', this.#challenge);
      throw new ConsoleRefusal(401, 'A name and a password are needed.');
    }
    const address = request.ip ?? request.socket.remoteAddress ?? '';
    const client = networkOf(address);
    const waitMs = this.#limiter.begin(client);
    if (waitMs > 0) {
      response.header('Retry-After', String(Math.ceil(waitMs / 1000)));
      throw new ConsoleRefusal(429, 'Too many wrong passwords. Try again in a minute.');
    }
    let right = true;
    try {
      right = await this.#isRight(credentials);
    } finally {
      // What "verify" could not tell is no wrong password.
      this.#limiter.end(client, right);
    }
    if (!right) {
      // Without the name: some type the password in its place.
      const whence = seenOnly(address).slice(0, 60);
      this.#log.warn('wrong', `A wrong name or password came from ${whence}.`);
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
