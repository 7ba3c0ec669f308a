import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import type { HttpService } from '@nestjs/axios';
import type { Dispatcher } from 'undici';
import {
  optionsInvalid,
  rejectUnknownNames,
  shown,
  shownText,
} from '../../errors/payments-error.js';

/** Name of the HTTP client that sends requests: undici, or axios's adapter on `node:http` or on the global `fetch`. */
export type HttpAdapter = 'undici' | 'http' | 'fetch';

/** Agents of `node:http` and `node:https`. */
export interface HttpAgents {
  http?: HttpAgent;
  https?: HttpsAgent;
}

/** How the API client sends requests. */
export interface HttpOptions {
  /**
   * The HTTP client that sends requests.
   *
   * - `'undici'` (default): the fastest, with more than twice as many calls per second as the others.
   * - `'http'`: axios on `node:http`. Select it for msw, nock and monitoring tools that patch `node:http`. It is
   *   the default if `agents` are given.
   * - `'fetch'`: axios on the global `fetch`, with the connections of `fetch`: `maxSockets` has no effect, and idle
   *   connections stay open after the application has closed (they do not keep the process alive). `fetch` does not
   *   report whether it has sent anything. So a POST is retried only if the connection could not be opened (DNS,
   *   connection refused). After any other failure, such as a failed TLS handshake or a timeout while connecting, the
   *   error is `outcome_unknown`.
   */
  adapter?: HttpAdapter;
  /**
   * Agents that replace the module's own, with the adapter `'http'`: for a proxy (`https-proxy-agent`), a
   * client certificate or a private certificate authority. Their limits replace `maxSockets` and apply to
   * token requests too. The application closes the agents. Default: agents of the module.
   *
   * No adapter reads `HTTP_PROXY` and `HTTPS_PROXY` by itself, because a proxy that is set for other traffic
   * would see tokens. (The global `fetch` does if Node.js was started with `NODE_USE_ENV_PROXY=1`.)
   */
  agents?: HttpAgents;
  /**
   * A dispatcher of undici 7 or later that replaces the module's own, with the adapter `'undici'`: for a proxy
   * (`EnvHttpProxyAgent`), a client certificate or a mock. Its limits replace `maxSockets` and apply to token
   * requests too. The application closes the dispatcher. Default: a dispatcher of the module.
   *
   * @example
   * ```ts
   * PaymentsModule.forRoot({ ..., api: { dispatcher: new EnvHttpProxyAgent() } })
   * ```
   */
  dispatcher?: Dispatcher;
  /**
   * The `HttpService` that sends calls and token requests, for a mock or for interceptors. **Its interceptors see
   * client credentials and tokens.** Its adapter and agents are used, unless `adapter` or `agents` are given too. Its
   * settings for redirects, proxies, status codes and limits are ignored. Default: an `HttpService` of the module's
   * own, which shares nothing with the global axios.
   */
  http?: HttpService;
  /** The most connections to one host. Further calls wait for a free connection. 1 to 10,000. Default 64. */
  maxSockets?: number;
}

/** The checked {@link HttpOptions}. */
export interface ResolvedHttpOptions {
  /** Undefined: the adapter of the `HttpService` in `http`. */
  readonly adapter: HttpAdapter | undefined;
  readonly agents: HttpAgents;
  readonly dispatcher: Dispatcher | undefined;
  readonly http: HttpService | undefined;
  readonly maxSockets: number;
}

const ADAPTERS: readonly unknown[] = ['undici', 'http', 'fetch'] satisfies HttpAdapter[];

/**
 * Checks the options and adds them to `target`.
 *
 * @throws PaymentsError `options_invalid`
 */
export function addHttpOptions<T extends object>(
  target: T,
  input: HttpOptions,
): T & Omit<ResolvedHttpOptions, 'maxSockets'> {
  const { dispatcher, http } = input;
  const agents = resolveAgents(input.agents);
  if (http !== undefined && (typeof http !== 'object' || typeof http?.request !== 'function')) {
    throw optionsInvalid('"api.http" must be an HttpService: new HttpService(axios.create()).');
  }
  if (dispatcher !== undefined && typeof dispatcher?.dispatch !== 'function') {
    throw optionsInvalid(
      '"api.dispatcher" must be a dispatcher of undici: an Agent, a Pool or an EnvHttpProxyAgent.',
    );
  }
  const adapter = resolveAdapter(input);
  Object.assign(target, { adapter });
  // Not enumerable, so that logs do not show these options: their sockets contain the headers that were sent last.
  const hidden = { agents: { value: agents }, dispatcher: { value: dispatcher } };
  return Object.defineProperties(target, { ...hidden, http: { value: http } }) as never;
}

function resolveAdapter({
  adapter,
  agents,
  dispatcher,
  http,
}: HttpOptions): HttpAdapter | undefined {
  if (adapter !== undefined && !ADAPTERS.includes(adapter)) {
    throw optionsInvalid(
      `"api.adapter" must be 'undici' (default), 'http' or 'fetch'; it is ${shownText(adapter)}.`,
    );
  }
  if (agents && dispatcher) {
    throw optionsInvalid(
      '"api.agents" are for node:http, and "api.dispatcher" is for undici; give one of the two.',
    );
  }
  if (agents && (adapter ?? 'http') !== 'http') {
    throw optionsInvalid(
      `"api.agents" are for node:http, and "api.adapter" is '${adapter}'; ` +
        `set it to 'http' or leave it out; undici takes a proxy as "api.dispatcher".`,
    );
  }
  if (dispatcher && (adapter ?? 'undici') !== 'undici') {
    throw optionsInvalid(
      `"api.dispatcher" is for undici, and "api.adapter" is '${adapter}'; ` +
        `set it to 'undici' or leave it out; 'http' takes a proxy as "api.agents".`,
    );
  }
  if (adapter !== undefined) return adapter;
  if (agents) return 'http';
  return http && !dispatcher ? undefined : 'undici';
}

function resolveAgents(value: HttpOptions['agents']): HttpAgents {
  if (value === undefined) return Object.freeze({});
  if (typeof value !== 'object' || value === null) {
    throw optionsInvalid(
      `"api.agents" must be an object with http or https; it is ${shown(value)}.`,
    );
  }
  rejectUnknownNames('api.agents.', value, ['http', 'https']);
  for (const [name, agent] of Object.entries(value)) {
    if (agent === undefined || (typeof agent === 'object' && 'addRequest' in agent)) continue;
    throw optionsInvalid(`"api.agents.${name}" must be an Agent of node:${name}.`);
  }
  return Object.freeze({ ...value });
}
