import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
// Not from undici's entry: that loads `fetch`, a cache and mocks too, which takes three times as long, and puts an
// agent of its own under the `fetch` of the application.
import connectorOf from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import type { ResolvedApiOptions } from './api.options.js';

/** `token`: connections of its own, one for each request, so that it never waits behind calls. */
export type Lane = 'calls' | 'token';

/**
 * How long an idle connection is kept, in milliseconds: under the 5 s after which the commonest servers close
 * theirs, so that a request seldom meets a connection that is just being closed. For a POST that would be an
 * unknown outcome.
 */
const IDLE_MS = 4_000;
/** How much longer than a request a connection may take to open, in milliseconds: the request gives up first. */
const CONNECT_GRACE_MS = 1_000;

/** The connections of one lane, to every host: undici's. */
export class ConnectionPools {
  readonly #agent: Dispatcher;
  readonly #sockets = new Set<Socket>();

  constructor(options: ResolvedApiOptions, lane: Lane) {
    const limitMs = lane === 'calls' ? options.attemptTimeoutMs : options.tokenTimeoutMs;
    const connector = connectorOf({ timeout: limitMs + CONNECT_GRACE_MS });
    const kept = {
      connections: options.maxSockets,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
    };
    this.#agent = new Agent({
      ...(lane === 'calls' ? kept : { pipelining: 0 }),
      // A request has a time limit of its own, over all of it.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (to, callback) => this.#keep(connector(to, callback) as unknown as Socket),
    });
  }

  get dispatcher(): Dispatcher {
    return this.#agent;
  }

  /** Closes every connection, with what goes on over it. */
  async close(): Promise<void> {
    const closed = this.#agent.destroy();
    // Undici leaves those that are just being opened to their time limit, which the process would wait for.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
