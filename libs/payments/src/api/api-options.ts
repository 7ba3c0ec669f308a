import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import type { Dispatcher } from 'undici';
import {
  checkFields,
  isWhole,
  mustBe,
  oneOf,
  optional,
  optionsInvalid,
  whole,
} from '../errors/option-checks.js';
import type { OptionChecks } from '../errors/option-checks.js';

export type HttpAdapter = 'undici' | 'http' | 'fetch';

export interface HttpAgents {
  http?: HttpAgent;
  https?: HttpsAgent;
}

/**
 * The policy for retries of GET and HEAD requests. A request with another method is retried only if no byte of the
 * request can have reached the service, so `statuses` does not apply to it.
 */
export interface RetryPolicy {
  /** Number of attempts, including the first. 1 to 10. Default 3; 1 means no retry. */
  attempts: number;
  /**
   * Statuses that are retried: numbers from 400 to 599, or `'5xx'` for 500 to 599. Default 408, 429 and `'5xx'`. The
   * service documents only the status 401, so the default follows the general meaning of the HTTP statuses.
   */
  statuses: readonly (number | '5xx')[];
  /**
   * The longest wait before the second attempt, in milliseconds. The wait doubles with each attempt, and jitter
   * shortens it by up to half. 1 to 60,000. Default 200.
   */
  baseDelayMs: number;
  /** The longest wait between two attempts, in milliseconds. 1 to 300,000. Default 5,000. */
  maxDelayMs: number;
  /**
   * The longest wait that a `Retry-After` can cause, in milliseconds. A longer wait is shortened to this value. 0 to
   * 300,000. Default 15,000.
   */
  maxRetryAfterMs: number;
}

/** Options for calls to the payments service. Every option has a default. */
export interface PaymentsApiOptions {
  /**
   * The only request header that contains the token. The service recommends `authorization`. Default `authorization`.
   */
  tokenHeader?: 'authorization' | 'x-auth-token';
  /**
   * The longest one attempt of a call may take, including connecting and reading the response, in milliseconds.
   * 1 to 300,000. Default 10,000.
   */
  attemptTimeoutMs?: number;
  /**
   * The longest a whole call may take, in milliseconds: the wait for a token, all attempts and the waits between
   * them. 1 to 600,000. Default 20,000.
   */
  deadlineMs?: number;
  /** The longest a token request may take, in milliseconds. 1 to 120,000. Default 10,000. */
  tokenTimeoutMs?: number;
  /** The largest response body that is read, in bytes after decompression. 1 to 268,435,456. Default 5,242,880. */
  maxResponseBytes?: number;
  /**
   * The policy for retries of GET and HEAD requests, or `false` for no retries. Every field of {@link RetryPolicy} has
   * a default.
   */
  retry?: Partial<RetryPolicy> | false;
  /**
   * The HTTP client that sends requests.
   *
   * - `'undici'` (default): the fastest, with more than twice as many calls per second as the others.
   * - `'http'`: `node:http`. Select this adapter if you use msw, nock or a monitoring tool that patches `node:http`.
   *   `'http'` is the default if `agents` are given.
   * - `'fetch'`: the global `fetch`, which manages its connections itself: `maxSockets` has no effect, and idle
   *   connections stay open after the application has closed (they do not keep the process alive). `fetch` does not
   *   report whether it has sent anything. Therefore, a POST is retried only if the connection could not be opened, for
   *   example because the DNS lookup failed or the connection was refused. After any other failure, such as a failed
   *   TLS handshake or a timeout while connecting, the error is `outcome_unknown`.
   */
  adapter?: HttpAdapter;
  /**
   * Agents for the adapter `'http'`, which replace the module's own agents: for a proxy (`https-proxy-agent`), a client
   * certificate or a private certificate authority. The limits of these agents replace `maxSockets` and apply to token
   * requests too. The application must close the agents, because the module does not close them. Default: agents of the
   * module.
   *
   * The module ignores the environment variables `HTTP_PROXY` and `HTTPS_PROXY`, because a proxy that is set for other
   * traffic would see tokens. Only the global `fetch` reads these variables, if Node.js was started with
   * `NODE_USE_ENV_PROXY=1`.
   */
  agents?: HttpAgents;
  /**
   * A dispatcher of undici 7 or later for the adapter `'undici'`, which replaces the module's own dispatcher: for a
   * proxy (`EnvHttpProxyAgent`), a client certificate or a mock. The limits of the dispatcher replace `maxSockets` and
   * apply to token requests too. The application must close the dispatcher, because the module does not close it.
   * Default: a dispatcher of the module.
   *
   * @example
   * ```ts
   * PaymentsModule.forRoot({ ..., api: { dispatcher: new EnvHttpProxyAgent() } })
   * ```
   */
  dispatcher?: Dispatcher;
  /** The maximum number of connections to one host. Further calls wait for a free connection. 1 to 10,000. Default 64. */
  maxSockets?: number;
}

export interface ResolvedApiOptions extends Readonly<
  Required<Omit<PaymentsApiOptions, 'dispatcher' | 'retry'>>
> {
  readonly retry: Readonly<RetryPolicy>;
  readonly dispatcher: Dispatcher | undefined;
}

export const PAYMENTS_API_OPTIONS = Symbol('PAYMENTS_API_OPTIONS');

const MS = 'milliseconds';
const RETRY = {
  attempts: whole({ default: 3, min: 1, max: 10, unit: 'attempts' }),
  statuses: checkStatuses,
  baseDelayMs: whole({ default: 200, min: 1, max: 60_000, unit: MS }),
  maxDelayMs: whole({ default: 5000, min: 1, max: 300_000, unit: MS }),
  maxRetryAfterMs: whole({ default: 15_000, min: 0, max: 300_000, unit: MS }),
} satisfies OptionChecks<RetryPolicy>;
const isAgent = (value: object): boolean => typeof value === 'object' && 'addRequest' in value;
const AGENTS = {
  http: optional<HttpAgent>('an Agent of node:http', isAgent),
  https: optional<HttpsAgent>('an Agent of node:https', isAgent),
} satisfies OptionChecks<HttpAgents>;
const CHECKS = {
  tokenHeader: oneOf('authorization', 'x-auth-token'),
  attemptTimeoutMs: whole({ default: 10_000, min: 1, max: 300_000, unit: MS }),
  deadlineMs: whole({ default: 20_000, min: 1, max: 600_000, unit: MS }),
  tokenTimeoutMs: whole({ default: 10_000, min: 1, max: 120_000, unit: MS }),
  maxResponseBytes: whole({ default: 5 * 1024 ** 2, min: 1, max: 256 * 1024 ** 2, unit: 'bytes' }),
  retry: checkRetry,
  adapter: checkAdapter,
  agents: (name: string, value: unknown) =>
    value === undefined ? undefined : (checkFields(name, value, AGENTS) as HttpAgents),
  dispatcher: optional<Dispatcher>(
    'a dispatcher of undici: an Agent, a Pool or an EnvHttpProxyAgent',
    (value) => typeof value.dispatch === 'function',
  ),
  maxSockets: whole({ default: 64, min: 1, max: 10_000, unit: 'sockets' }),
} satisfies OptionChecks<PaymentsApiOptions>;

/** @throws PaymentsError `options_invalid`. The message names the option, its unit, its bounds and the fix. */
export function resolveApiOptions(input: PaymentsApiOptions = {}): ResolvedApiOptions {
  const { agents, dispatcher, ...checked } = checkFields('api', input, CHECKS);
  const adapter = chooseAdapter(checked.adapter, agents, dispatcher);
  // Logs must not show these two options, because their sockets contain the headers of the latest request. Therefore,
  // the properties are not enumerable.
  const hidden = {
    agents: { value: agents ?? Object.freeze({}) },
    dispatcher: { value: dispatcher },
  };
  const resolved = Object.defineProperties({ ...checked, adapter }, hidden);
  return Object.freeze(resolved) as unknown as ResolvedApiOptions;
}

function checkAdapter(name: string, value: unknown): HttpAdapter | undefined {
  return value === undefined ? undefined : oneOf('undici', 'http', 'fetch')(name, value);
}

function chooseAdapter(
  adapter: HttpAdapter | undefined,
  agents: HttpAgents | undefined,
  dispatcher: Dispatcher | undefined,
): HttpAdapter {
  if (agents && dispatcher) {
    throw optionsInvalid(
      '"api.agents" are for node:http, and "api.dispatcher" is for undici. Set only one of the two options.',
    );
  }
  const [needed, option] = agents
    ? (['http', '"api.agents" are for node:http'] as const)
    : (['undici', '"api.dispatcher" is for undici'] as const);
  if (!agents && !dispatcher) return adapter ?? 'undici';
  if (adapter === undefined || adapter === needed) return needed;
  throw optionsInvalid(
    `${option}, and "api.adapter" is '${adapter}'. Set "api.adapter" to '${needed}', or leave it out. ` +
      `Set a proxy as "api.dispatcher" with 'undici', and as "api.agents" with 'http'.`,
  );
}

function checkRetry(name: string, value: unknown): Readonly<RetryPolicy> {
  const policy = value === false ? { attempts: 1 } : (value ?? {});
  if (typeof policy === 'object') return checkFields(name, policy, RETRY);
  throw mustBe(name, 'a policy object, or false for no retries', value);
}

function checkStatuses(name: string, value: unknown): readonly (number | '5xx')[] {
  if (value === undefined) return DEFAULT_STATUSES;
  if (Array.isArray(value) && value.every(isStatus)) return Object.freeze([...value]);
  throw mustBe(name, "an array of whole numbers from 400 to 599 and '5xx'", value);
}

const DEFAULT_STATUSES: readonly (number | '5xx')[] = Object.freeze([408, 429, '5xx'] as const);

function isStatus(value: unknown): value is number | '5xx' {
  return value === '5xx' || isWhole(value, 400, 599);
}
