import { describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { InboxStore } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { postgresInbox } from '../../../libs/payments/src/stores/postgres/index.js';
import { systemRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { TcpProxy } from '../../chaos/tcp-proxy.ts';
import { eventually } from '../../support/time/waiting.js';
import {
  claim,
  freshSchema,
  incoming,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

describe('PostgreSQL is not reachable', () => {
  const inboxes = usePostgresInboxes();

  /** Returns the number of milliseconds until the operation rejects. */
  const rejectionMs = async (work: Promise<unknown>): Promise<number> => {
    const begun = performance.now();
    await expect(work).rejects.toMatchObject({ code: 'inbox_unavailable' });
    return performance.now() - begun;
  };
  /** Receives an event until it is stored, and returns the number of tries. */
  const triesToStore = async (store: InboxStore, id: string): Promise<number> => {
    for (let tries = 1; ; tries += 1) {
      const receipts = await store.receive([incoming(id)]).catch(() => null);
      if (receipts !== null) return tries;
    }
  };
  /** Resolves with the next wake-up of the store. */
  const woken = (store: InboxStore): Promise<void> =>
    new Promise((resolve) => {
      const stop = store.onWake(() => {
        stop();
        resolve();
      });
    });

  it('IN-25 the inbox works and receives notifications after every connection was cut', async () => {
    const schema = freshSchema();
    const pool = new Pool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ schema, pool, pollMs: 60_000 });
    await Promise.all(['a', 'b', 'c', 'd'].map((id) => store.receive([incoming(id)])));
    await woken(store);
    const reconnected = woken(store);
    const [lease] = await claim(store, 1);
    const committing = store.commit(lease!, async (tx) => {
      const cut = await inboxes.server.cutConnections(inboxes.connectionString);
      // At least two connections end: the connection of this commit and the connection for notifications.
      expect(cut).toBeGreaterThan(1);
      await tx.query('SELECT 1');
    });
    await expect(committing).rejects.toThrow();
    await reconnected;
    const notified = woken(store);
    await triesToStore(store, 'after');
    await notified;
    expect(await store.complete(lease!)).toEqual({ settled: true, nextDue: false });
    expect(await claim(store)).toHaveLength(4);
    await store.close();
    await pool.end();
  });

  it('IN-08 IN-25 operations reject while the server is down, and work after it has started again', async () => {
    if (!inboxes.server.controllable) return;
    const store = await inboxes.open({ connectTimeoutMs: 1000, statementTimeoutMs: 1000 });
    await store.receive([incoming('before')]);
    await woken(store);
    for (const mode of ['fast', 'immediate'] as const) {
      await inboxes.server.stop(mode);
      const rejections = await Promise.all(
        Array.from({ length: 20 }, (_, n) => rejectionMs(store.receive([incoming(`down ${n}`)]))),
      );
      expect(Math.max(...rejections)).toBeLessThan(10_000);
      await rejectionMs(claim(store));
      await rejectionMs(store.stats());
      const reconnected = woken(store);
      await inboxes.server.start();
      expect(await triesToStore(store, `back from ${mode}`)).toBeLessThan(20);
      await reconnected;
    }
    // On a busy machine, a new connection may take longer than "connectTimeoutMs".
    const claimed = await eventually(() => claim(store));
    expect(claimed.map(({ id }) => id)).toEqual([
      'before',
      'back from fast',
      'back from immediate',
    ]);
  });

  it('IN-08 operations reject in bounded time if the server does not respond', async () => {
    const [proxy, connectionString] = await TcpProxy.before(inboxes.connectionString);
    const store = await inboxes.open({
      connectionString,
      connectTimeoutMs: 1000,
      statementTimeoutMs: 1000,
    });
    await store.receive([incoming('before')]);
    proxy.silence(true);
    const rejections = await Promise.all(
      Array.from({ length: 20 }, (_, n) => rejectionMs(store.receive([incoming(`silent ${n}`)]))),
    );
    expect(Math.max(...rejections)).toBeLessThan(10_000);
    proxy.cut();
    proxy.silence(false);
    await triesToStore(store, 'after');
    expect(await claim(store)).toHaveLength(2);
    await store.close();
    await proxy.close();
  });

  it('receive() waits a bounded time for a connection of an application pool', async () => {
    const pool = new Pool({ connectionString: inboxes.connectionString, max: 1 });
    const store = await inboxes.open({ pool, connectTimeoutMs: 200 });
    const taken = await pool.connect();
    expect(await rejectionMs(store.receive([incoming('e1')]))).toBeLessThan(10_000);
    taken.release();
    expect(await store.receive([incoming('e1')])).toMatchObject([{ outcome: 'stored', id: 'e1' }]);
    await store.close();
    await pool.end();
  });

  it('open() rejects if there is no server, and the error names the cause and the options but not the password', async () => {
    const opening = inboxes.open({
      connectionString: 'postgres://shop:secret@127.0.0.1:1/shop',
      startTimeoutMs: 0,
    });
    await expect(opening).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await expect(opening).rejects.toThrow(
      /ECONNREFUSED.* after 1 try and does not start\. .*"connectionString".*"startTimeoutMs"/,
    );
    await opening.catch((error: unknown) => expect(JSON.stringify(error)).not.toContain('secret'));
  });

  describe('open() with a database that cannot be reached', () => {
    /** Opens an inbox whose first connections fail. Waits of at most 5 seconds end at once. */
    async function openAfter(failures: number, error: object) {
      let [now, tries] = [0, 0];
      const runtime: PaymentsRuntime = {
        ...systemRuntime,
        monotonic: () => now,
        schedule: (ms, callback) => {
          if (ms > 5000) return () => {};
          now += ms;
          const timer = setImmediate(callback);
          return () => clearImmediate(timer);
        },
      };
      const pool = new Pool({ connectionString: inboxes.connectionString });
      const connect = pool.connect.bind(pool) as (...args: unknown[]) => unknown;
      pool.connect = ((callback: (error: object) => void) => {
        tries += 1;
        if (tries > failures) return connect(callback);
        return setImmediate(() => callback(error));
      }) as unknown as Pool['connect'];
      const limits = { connectTimeoutMs: 60_000, pollMs: 60_000 };
      const store = postgresInbox({ schema: freshSchema(), pool, ...limits }).create(runtime);
      const failure = await store.open().then(
        () => null,
        (reason: Error) => reason,
      );
      await store.close();
      await pool.end();
      return { failure, tries, now };
    }
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const ofServer = (code: string) =>
      Object.assign(new Error('not now'), { code, severity: 'FATAL' });

    it.each([
      ['refuses connections', refused],
      ['is starting', ofServer('57P03')],
      ['has no free connection', ofServer('53300')],
    ])('open() tries again while the database %s', async (_, error) => {
      const { failure, now } = await openAfter(5, error);
      expect(failure).toBeNull();
      expect(now).toBeGreaterThan(1000);
    });

    it('open() rejects after 30 seconds, and the error names the number of tries', async () => {
      const { failure, tries, now } = await openAfter(Infinity, refused);
      expect(failure).toMatchObject({ code: 'inbox_unavailable' });
      expect(failure!.message).toContain(` after ${tries} tries and does not start.`);
      expect(now).toBeGreaterThan(20_000);
      expect(now).toBeLessThanOrEqual(30_000);
    });

    it('open() rejects without a second try if the password is wrong', async () => {
      const { failure, tries } = await openAfter(Infinity, ofServer('28P01'));
      expect(tries).toBe(1);
      expect(failure!.message).toMatch(/28P01.*Check .*"connectionString"/);
    });
  });

  it('a closed inbox rejects operations, and does not end a pool of the application', async () => {
    const pool = new Pool({ connectionString: inboxes.connectionString });
    const [withOwnPool, withGivenPool] = [await inboxes.open(), await inboxes.open({ pool })];
    const last = withGivenPool.receive([incoming('last')]);
    await Promise.all([withOwnPool.close(), withGivenPool.close()]);
    await expect(last).resolves.toMatchObject([{ outcome: 'stored', id: 'last' }]);
    for (const store of [withOwnPool, withGivenPool]) {
      await rejectionMs(store.receive([incoming('late')]));
      await rejectionMs(store.stats());
    }
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(pool.listenerCount('error')).toBe(0);
    await pool.end();
  });
});
