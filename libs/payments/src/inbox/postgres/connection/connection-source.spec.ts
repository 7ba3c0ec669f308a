import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { Pool } from 'pg';
import { systemRuntime } from '../../../runtime/payments-runtime.js';
import { ConnectionSource } from './connection-source.js';

describe('ConnectionSource', () => {
  it('outlives a connection that ends in the packet that brought it', async () => {
    const client = Object.assign(new EventEmitter(), { release: () => {} });
    const pool = Object.assign(new EventEmitter(), {
      // As pg's pool does it: it has stopped listening, hands out, and the rest of the packet is read.
      connect: (done: (error: undefined, given: unknown) => void) => {
        done(undefined, client);
        client.emit('error', new Error('terminating connection due to administrator command'));
      },
    });
    const limits = { connectTimeoutMs: 1000, statementTimeoutMs: 1000, preparedStatements: true };
    const source = new ConnectionSource(pool as unknown as Pool, limits, systemRuntime);
    const connection = await source.connect();
    connection.release();
    expect(client.listenerCount('error')).toBe(0);
    source.close();
  });
});
