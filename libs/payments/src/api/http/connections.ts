import { Agent as HttpAgent, type AgentOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import type * as Undici from 'undici';
import type { ResolvedApiOptions } from '../api-options.js';
import { ConnectionWatch } from './connection-watch.js';
import type { Exchange, HttpRequest } from './exchange.js';
import { UndiciExchange } from './undici-adapter.js';

/** `token`: a new connection for every token request, so that it never waits for a call. */
export type ConnectionPurpose = 'calls' | 'token';

/** Connections to any host, for calls or for token requests. */
export interface Connections {
  exchange(request: HttpRequest): Exchange;
  /** Closes the connections, except those of agents and dispatchers that the application passed in. */
  close(): Promise<void>;
}

/**
 * How long an idle connection is kept, in milliseconds: less than the 5 s after which common servers close
 * theirs, so that a request rarely meets a connection that is being closed. For a POST the outcome would be
 * unknown.
 */
const IDLE_MS = 4_000;
/** How much longer than a request a connection may take to open, in milliseconds: the request ends first. */
const CONNECT_GRACE_MS = 1_000;

/** Prepares connections for the adapter that the options select. undici is imported here, if it is needed. */
export async function openConnections(
  options: ResolvedApiOptions,
  purpose: ConnectionPurpose,
): Promise<Connections> {
  if (options.adapter !== 'undici') return nodeConnections(options, purpose);
  const { dispatcher } = options;
  if (!dispatcher) return undiciConnections(await import('undici'), options, purpose);
  return { exchange: (request) => new UndiciExchange(dispatcher, request), close: async () => {} };
}

function undiciConnections(
  { Agent, buildConnector }: typeof Undici,
  options: ResolvedApiOptions,
  purpose: ConnectionPurpose,
): Connections {
  const limitMs = purpose === 'calls' ? options.attemptTimeoutMs : options.tokenTimeoutMs;
  const connector = buildConnector({ timeout: limitMs + CONNECT_GRACE_MS });
  const sockets = new Set<Socket>();
  const keepAlive = {
    connections: options.maxSockets,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  };
  const agent = new Agent({
    ...(purpose === 'calls' ? keepAlive : { pipelining: 0 }),
    // Every request has a time limit of its own.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (to, callback) => {
      const socket = connector(to, callback) as unknown as Socket;
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    },
  });
  return {
    exchange: (request) => new UndiciExchange(agent, request),
    close: async () => {
      const closed = agent.destroy();
      // undici leaves a connection that is being opened to its timeout, which would keep the process alive.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function nodeConnections(options: ResolvedApiOptions, purpose: ConnectionPurpose): Connections {
  // An HttpService of the application has agents of its own, and fetch uses none.
  const own = options.adapter === 'http' && !options.http;
  const keepAlive = { keepAlive: true, maxSockets: options.maxSockets, timeout: IDLE_MS };
  const agentOptions: AgentOptions = purpose === 'calls' ? keepAlive : {};
  const agents = own
    ? { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) }
    : {};
  const used = { ...agents, ...options.agents };
  return {
    exchange: ({ signal }) => new ConnectionWatch(options.adapter, used, signal),
    close: async () => {
      agents.http?.destroy();
      agents.https?.destroy();
    },
  };
}
