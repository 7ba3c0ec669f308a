import { expect, it } from '@jest/globals';
import { memoryInbox } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { InboxDefinition } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { onOneAdapter } from '../../support/webhook/handler-application.js';
import type { Start } from '../../support/webhook/handler-application.js';
import { OPTIONS, Orders } from '../../support/webhook/webhook-application.js';

/** The warnings of an application that boots with this NODE_ENV and handles two events. */
async function warnings(
  start: Start,
  environment: string | undefined,
  inbox?: InboxDefinition,
): Promise<string[]> {
  const runtime = new FakeRuntime();
  if (environment !== undefined) runtime.environment = environment;
  const payments = { runtime, ...(inbox && { inbox }) };
  await using app = await start({ payments, providers: [Orders] });
  for (let i = 0; i < 2; i += 1) {
    expect((await app.send(signedWebhook(OPTIONS))).status).toBe(200);
  }
  return app.log.matching(/^warn/);
}

onOneAdapter('the memory inbox in production', (start) => {
  it.each([
    ['if no inbox is configured', undefined],
    ['if memoryInbox() is configured', memoryInbox()],
  ])('WH-31 the memory inbox logs one warning in production %s', async (_, inbox) => {
    const logged = await warnings(start, 'production', inbox);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatch(/memory inbox.*NODE_ENV=production.*restart loses/);
    expect(logged[0]).toMatch(/sqliteInbox\(\).*postgresInbox\(\).*acceptInProduction: true/);
  });

  it('WH-31 the memory inbox logs no warning in production with acceptInProduction', async () => {
    const inbox = memoryInbox({ acceptInProduction: true });
    expect(await warnings(start, 'production', inbox)).toEqual([]);
  });

  it.each([undefined, 'development', 'test'])(
    'WH-31 the memory inbox logs no warning if NODE_ENV is %s',
    async (environment) => {
      expect(await warnings(start, environment, memoryInbox())).toEqual([]);
    },
  );

  it('WH-31 a durable inbox logs no warning in production', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'payments-production-'));
    try {
      const inbox = sqliteInbox({ file: join(folder, 'inbox.db') });
      expect(await warnings(start, 'production', inbox)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

it('WH-31 memoryInbox() rejects an acceptInProduction that is not a boolean', () => {
  expect(() => memoryInbox({ acceptInProduction: 'false' as never })).toThrow(
    '"memoryInbox.acceptInProduction" must be true or false; it is a text of 5 characters.',
  );
});
