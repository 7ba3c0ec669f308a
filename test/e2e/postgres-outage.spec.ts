import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { InboxStore } from '../../libs/payments/src/inbox/store/inbox-store.js';
import { CutProxy } from '../support/postgres/cut-proxy.js';
import {
  claim,
  freshSchema,
  incoming,
  PostgresInboxes,
} from '../support/postgres/postgres-inboxes.js';

describe('PostgreSQL out of reach', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  /** How long it takes to be refused. */
  const refusal = async (work: Promise<unknown>): Promise<number> => {
    const begun = performance.now();
    await expect(work).rejects.toMatchObject({ code: 'inbox_unavailable' });
    return performance.now() - begun;
  };
  /** Tries until it is let in again. */
  const stored = async (store: InboxStore, id: string): Promise<number> => {
    for (let tries = 1; ; tries += 1) {
      const receipts = await store.receive([incoming(id)]).catch(() => null);
      if (receipts !== null) return tries;
    }
  };
  /** A wake that comes after this was called. */
  const woken = (store: InboxStore): Promise<void> =>
    new Promise((resolve) => {
      const stop = store.onWake(() => {
        stop();
        resolve();
      });
    });

  it('IN-25 survives the cut of every connection, and receives notifications again', async () => {
    const schema = freshSchema();
    const pool = new Pool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ schema, pool, pollMs: 60_000 });
    await Promise.all(['a', 'b', 'c', 'd'].map((id) => store.receive([incoming(id)])));
    await woken(store);
    const reconnected = woken(store);
    const [lease] = await claim(store, 1);
    const committing = store.commit(lease!, async (tx) => {
      const cut = await inboxes.server.cutConnections(inboxes.connectionString);
      // At least that of this commit, and the one that listens.
      expect(cut).toBeGreaterThan(1);
      await tx.query('SELECT 1');
    });
    await expect(committing).rejects.toThrow();
    await reconnected;
    const notified = woken(store);
    await stored(store, 'after');
    await notified;
    expect(await store.complete(lease!)).toEqual({ settled: true, nextDue: false });
    expect(await claim(store)).toHaveLength(4);
    await store.close();
    await pool.end();
  });

  it('IN-08 IN-25 refuses at once while the server is down, and goes on when it is back', async () => {
    if (!inboxes.server.controllable) return;
    const store = await inboxes.open({ connectTimeoutMs: 1000, statementTimeoutMs: 1000 });
    await store.receive([incoming('before')]);
    await woken(store);
    for (const mode of ['fast', 'immediate'] as const) {
      await inboxes.server.stop(mode);
      const refusals = await Promise.all(
        Array.from({ length: 20 }, (_, n) => refusal(store.receive([incoming(`down ${n}`)]))),
      );
      expect(Math.max(...refusals)).toBeLessThan(10_000);
      await refusal(claim(store));
      await refusal(store.stats());
      const reconnected = woken(store);
      await inboxes.server.start();
      expect(await stored(store, `back from ${mode}`)).toBeLessThan(20);
      await reconnected;
    }
    expect((await claim(store)).map(({ id }) => id)).toEqual([
      'before',
      'back from fast',
      'back from immediate',
    ]);
  }, 60_000);

  it('IN-08 gives up on a server that has fallen silent', async () => {
    const [proxy, connectionString] = await CutProxy.before(inboxes.connectionString);
    const store = await inboxes.open({
      connectionString,
      connectTimeoutMs: 1000,
      statementTimeoutMs: 1000,
    });
    await store.receive([incoming('before')]);
    proxy.silent = true;
    const refusals = await Promise.all(
      Array.from({ length: 20 }, (_, n) => refusal(store.receive([incoming(`silent ${n}`)]))),
    );
    expect(Math.max(...refusals)).toBeLessThan(10_000);
    proxy.silent = false;
    await stored(store, 'after');
    expect(await claim(store)).toHaveLength(2);
    await store.close();
    await proxy.end();
  }, 30_000);

  it("waits for an application's pool for a bounded time", async () => {
    const pool = new Pool({ connectionString: inboxes.connectionString, max: 1 });
    const store = await inboxes.open({ pool, connectTimeoutMs: 200 });
    const taken = await pool.connect();
    expect(await refusal(store.receive([incoming('e1')]))).toBeLessThan(10_000);
    taken.release();
    expect(await store.receive([incoming('e1')])).toMatchObject([{ outcome: 'stored', id: 'e1' }]);
    await store.close();
    await pool.end();
  });

  it('does not open where there is no server, and says so', async () => {
    const opening = inboxes.open({ connectionString: 'postgres://shop:secret@127.0.0.1:1/shop' });
    await expect(opening).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await expect(opening).rejects.toThrow(/ECONNREFUSED/);
    await opening.catch((error: unknown) => expect(JSON.stringify(error)).not.toContain('secret'));
  });

  it('takes nothing that a closed inbox is asked for, and leaves a pool that is not its own', async () => {
    const pool = new Pool({ connectionString: inboxes.connectionString });
    const [own, lent] = [await inboxes.open(), await inboxes.open({ pool })];
    const last = lent.receive([incoming('last')]);
    await Promise.all([own.close(), lent.close()]);
    await expect(last).resolves.toMatchObject([{ outcome: 'stored', id: 'last' }]);
    for (const store of [own, lent]) {
      await refusal(store.receive([incoming('late')]));
      await refusal(store.stats());
    }
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(pool.listenerCount('error')).toBe(0);
    await pool.end();
  });
});
