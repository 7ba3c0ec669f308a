import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { memoryInbox, PaymentExpectations } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { RECONCILE } from '../../support/inbox/expecting-application.js';
import { inboxOf, post } from '../../support/inbox/inbox-application.js';
import { TcpProxy } from '../../chaos/tcp-proxy.ts';
import { startPostgres } from '../../support/postgres/postgres-server.js';
import type { PostgresServer } from '../../support/postgres/postgres-server.js';
import { healthOf, startWithHealth } from '../../support/telemetry/health-application.js';
import { eventually } from '../../support/time/waiting.js';
import { OPTIONS } from '../../support/webhook/webhook-application.js';
import { settled } from '../../support/inbox/settled.js';

describe('health of an application with @nestjs/terminus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-health-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  /** A durable inbox, which responds to a webhook request even if the handlers are paused. */
  const durable = (name: string) =>
    sqliteInbox({ file: join(folder, `${name}.db`), allowOldSqlite: true });

  it('TE-07 readiness is up and shows the age of the oldest unfinished delivery, dead deliveries, overdue payments and paused handlers', async () => {
    await using app = await startWithHealth(durable('details'), {}, { reconcile: RECONCILE });
    expect(await healthOf(app, 'ready')).toMatchObject({
      status: 200,
      payments: { status: 'up', oldestPendingMs: null, dead: 0, overdueUnknown: 0, paused: [] },
    });
    await post(app, 'e-1');
    await settled(app.app);
    const dueBy = new Date('2026-01-01');
    await app.app.get(PaymentExpectations).expect({ transactionId: 't-9', dueBy });
    await inboxOf(app).pause('book');
    await post(app, 'e-2', {});
    await eventually(async () =>
      expect(await healthOf(app, 'ready')).toMatchObject({
        status: 200,
        payments: {
          status: 'up',
          oldestPendingMs: expect.any(Number),
          dead: 1,
          overdueUnpaid: 0,
          overdueUnknown: 1,
          paused: ['book'],
        },
      }),
    );
  });

  it('TE-07 readiness is down and names the exceeded values if dead deliveries or overdue payments are above their limits', async () => {
    const limits = { maxDead: 0, maxOverdueUnknown: 0, maxOldestPendingMs: 3_600_000 };
    await using app = await startWithHealth(memoryInbox(), limits, { reconcile: RECONCILE });
    expect(await healthOf(app, 'ready')).toMatchObject({ status: 200 });
    await post(app, 'e-1');
    await settled(app.app);
    const down = { status: 503, payments: { status: 'down', dead: 1, exceeded: ['dead'] } };
    expect(await healthOf(app, 'ready')).toMatchObject(down);
    const dueBy = new Date('2026-01-01');
    await app.app.get(PaymentExpectations).expect({ transactionId: 't-9', dueBy });
    await eventually(async () =>
      expect((await healthOf(app, 'ready')).payments['exceeded']).toEqual(
        expect.arrayContaining(['overdueUnknown']),
      ),
    );
    expect(await healthOf(app, 'live')).toMatchObject({ status: 200 });
  });

  it('TE-07 readiness is down if the oldest unfinished delivery is older than its limit', async () => {
    await using app = await startWithHealth(durable('oldest'), { maxOldestPendingMs: 0 });
    await inboxOf(app).pause();
    await post(app, 'e-1');
    await eventually(async () =>
      expect(await healthOf(app, 'ready')).toMatchObject({
        status: 503,
        payments: { exceeded: ['oldestPendingMs'], paused: ['*'] },
      }),
    );
  });

  it.each([
    { timeoutMs: 9 },
    { timeoutMs: 60_001 },
    { maxDead: -1 },
    { maxDead: 10_000 },
    { maxOldestPendingMs: '5' as never },
    { maxDeed: 1 } as object,
  ])('TE-07 a readiness check with the option %j fails with the response 500', async (options) => {
    await using app = await startWithHealth(memoryInbox(), options);
    expect((await fetch(`${app.url}/health/ready`)).status).toBe(500);
  });
});

describe('health while PostgreSQL is not reachable', () => {
  let server: PostgresServer;
  let connectionString: string;

  beforeAll(async () => {
    server = await startPostgres();
    connectionString = await server.createDatabase();
  });
  afterAll(() => server.end(), 60_000);

  it('TE-07 readiness is down while PostgreSQL is stopped and up after its restart, and liveness stays up', async () => {
    if (!server.controllable) return;
    const inbox = postgresInbox({ connectionString, connectTimeoutMs: 1000, pollMs: 200 });
    await using app = await startWithHealth(inbox);
    expect((await healthOf(app, 'ready')).status).toBe(200);
    await server.stop('immediate');
    try {
      const ready = await healthOf(app, 'ready');
      expect(ready).toMatchObject({
        status: 503,
        payments: { status: 'down', error: 'inbox_unavailable' },
      });
      const { hostname, port } = new URL(connectionString);
      for (const secret of [OPTIONS.webhookSecret, connectionString, hostname, port]) {
        expect(ready.text).not.toContain(secret);
      }
      expect(await healthOf(app, 'live')).toMatchObject({
        status: 200,
        payments: { status: 'up' },
      });
    } finally {
      await server.start();
    }
    await eventually(async () => expect((await healthOf(app, 'ready')).status).toBe(200));
  });

  it('TE-07 readiness is down within its time limit if PostgreSQL does not respond, and liveness stays up', async () => {
    const [proxy, throughProxy] = await TcpProxy.before(connectionString);
    // The store itself would wait longer than the test.
    const inbox = postgresInbox({
      connectionString: throughProxy,
      schema: 'silent',
      connectTimeoutMs: 60_000,
      statementTimeoutMs: 60_000,
    });
    await using app = await startWithHealth(inbox, { timeoutMs: 500 });
    try {
      await eventually(async () => expect((await healthOf(app, 'ready')).status).toBe(200));
      proxy.silence(true);
      const checks = await Promise.all([healthOf(app, 'ready'), healthOf(app, 'ready')]);
      expect(checks.map(({ status }) => status)).toEqual([503, 503]);
      expect((await healthOf(app, 'ready')).payments).toMatchObject({ error: 'inbox_unavailable' });
      expect((await healthOf(app, 'live')).status).toBe(200);
    } finally {
      await proxy.close();
    }
  });
});
