import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { Pool } from 'pg';
import { systemRuntime } from '../../../runtime/payments-runtime.js';
import { ConnectionSource } from './connection-source.js';

describe('ConnectionSource', () => {
  it('ConnectionSource survives an error of the server that arrives in the same packet as the end of the handshake', async () => {
    const client = Object.assign(new EventEmitter(), { release: () => {} });
    const pool = Object.assign(new EventEmitter(), {
      // The pool of pg does the same: it removes its error listener, calls back, and then reads the rest of the packet.
      connect: (done: (error: undefined, connected: unknown) => void) => {
        done(undefined, client);
        client.emit('error', new Error('terminating connection due to administrator command'));
      },
    });
    const limits = {
      connectTimeoutMs: 1000,
      statementTimeoutMs: 1000,
      preparedStatements: true,
      pool: undefined,
    };
    const source = new ConnectionSource(limits, systemRuntime);
    source.open(pool as unknown as Pool);
    const connection = await source.connect();
    connection.release();
    expect(client.listenerCount('error')).toBe(0);
  });

  it.each([true, false])(
    'IN-25 after close(), a connection that ends with an error does not end the process; own pool: %s',
    async (own) => {
      const pool = Object.assign(new EventEmitter(), { end: () => Promise.resolve() });
      // The application listens to its own pool.
      if (!own) pool.on('error', () => {});
      const settings = {
        connectTimeoutMs: 1000,
        statementTimeoutMs: 1000,
        preparedStatements: true,
        pool: own ? undefined : (pool as unknown as Pool),
      };
      const source = new ConnectionSource(settings, systemRuntime);
      source.open(pool as unknown as Pool);
      await source.close();
      expect(() => pool.emit('error', new Error('terminating connection'))).not.toThrow();
      expect(pool.listenerCount('error')).toBe(1);
    },
  );
});
