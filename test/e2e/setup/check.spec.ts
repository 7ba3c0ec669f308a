import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { none, OnPaymentEvent, PaymentsSetup } from 'nestjs-payments';
import type { SetupCheck } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { CheckedApplication, optionsOf } from '../../support/setup/checked-application.js';
import { ADAPTERS } from '../../support/webhook/webhook-application.js';
import { usePostgresInboxes } from '../../support/postgres/postgres-inboxes.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

/** The names and states of the lines. */
const summary = (lines: readonly SetupCheck[]) =>
  lines.map(({ name, company, state }) => [name, company, state].join(' '));

const HEALTHY = [
  'settings default ok',
  'token default ok',
  'inbox  ok',
  'handlers  ok',
  'webhook default ok',
];

@Injectable()
class FailingTests {
  @OnPaymentEvent('webhook.test', { retry: none })
  fail(): void {
    throw new Error('the secret of the handler');
  }
}

describe.each(Object.keys(ADAPTERS))('PaymentsSetup.check() on %s', (adapter) => {
  it('AP-18 check() checks everything from the settings to a test webhook', async () => {
    await using checked = await CheckedApplication.start(() => ({ adapter: ADAPTERS[adapter]!() }));
    const lines = await checked.check({ sendTest: true });
    const usual = lines.filter(({ message }) => !/is no provider/.test(message));
    expect(summary(usual)).toEqual(HEALTHY);
    const [settings, token, , handlers, webhook] = usual.map(({ message }) => message);
    expect(settings).toContain(`Calls go to ${checked.emulator.baseUrl}`);
    expect(settings).toContain('POST /webhooks/payments and are verified with 1 webhook secret');
    expect(token).toMatch(/^The service issued a token in \d+ ms\. It is valid for 3599 s\.$/);
    expect(handlers).toContain('transaction.completed#markPaid (transaction.completed)');
    expect(webhook).toMatch(/arrived and its signature is valid, \d+ ms after the request/);
  });
});

onEachDurableInbox((durable) => {
  it('AP-18 the check reads and writes the inbox', async () => {
    const data = await durable.data();
    await using checked = await CheckedApplication.start(() => ({
      payments: { inbox: data.inbox() },
    }));
    const [line] = await checked.check({ only: 'inbox' });
    expect(line).toMatchObject({
      state: 'ok',
      message: expect.stringMatching(/reachable, writable and migrated/),
    });
  });
});

describe('PaymentsSetup.check() on PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('AP-18 if the inbox does not respond within the time limit, check() reports the inbox and the fix', async () => {
    const { connectionString } = inboxes;
    await using checked = await CheckedApplication.start(() => ({
      payments: { inbox: postgresInbox({ connectionString, schema: 'locked' }) },
    }));
    const other = await inboxes.openClient();
    await other.query('BEGIN; LOCK TABLE locked.worker');
    const lines = await checked.check({ only: 'inbox', timeoutMs: 200 });
    await other.query('ROLLBACK');
    const message = 'The store did not respond within 200 ms.';
    const fix = expect.stringContaining('must be reachable');
    expect(lines).toMatchObject([{ state: 'failed', message, fix }]);
  });
});

describe('PaymentsSetup.check()', () => {
  it('AP-18 check() rejects a time limit that is out of bounds', async () => {
    await using checked = await CheckedApplication.start();
    for (const timeoutMs of [99, 60_001, 100.5, NaN]) {
      await expect(checked.check({ timeoutMs })).rejects.toThrow(TypeError);
    }
  });

  it('AP-18 check() yields the line of each check as soon as this check has ended', async () => {
    await using checked = await CheckedApplication.start();
    const lines = checked.app.app.get(PaymentsSetup).check();
    expect((await lines.next()).value).toMatchObject({ name: 'settings', state: 'ok' });
    // The token is requested only when the next line is.
    await checked.emulator.close();
    expect((await lines.next()).value).toMatchObject({ name: 'token', state: 'failed' });
  });

  it('AP-18 check() sends a test webhook only if the caller requests it and there is a token', async () => {
    await using checked = await CheckedApplication.start();
    const [unasked] = await checked.check({ only: 'webhook' });
    expect(unasked).toMatchObject({
      state: 'skipped',
      fix: expect.stringMatching(/sendTest: true/),
    });
    checked.emulator.rotateClientSecret();
    const withoutToken = await checked.check({ sendTest: true });
    expect(summary(withoutToken)).toEqual(
      expect.arrayContaining(['token default failed', 'webhook default skipped']),
    );
    expect(checked.emulator.deliveries()).toEqual([]);
  });

  it('AP-18 check() requests a new token even if a token is cached, and calls still use the cached token', async () => {
    await using checked = await CheckedApplication.start();
    await checked.check({ only: 'webhook', sendTest: true });
    checked.emulator.rotateClientSecret();
    expect(await checked.check({ only: 'token' })).toMatchObject([
      { state: 'failed', message: expect.stringMatching(/rejected the credentials/) },
    ]);
    const [webhook] = await checked.check({ only: 'webhook', sendTest: true });
    expect(webhook).toMatchObject({ state: 'ok' });
  });

  it('AP-18 check() reports that a test event is stored but not handled', async () => {
    await using checked = await CheckedApplication.start(() => ({ providers: [FailingTests] }));
    const [line] = await checked.check({ only: 'webhook', sendTest: true });
    expect(line).toMatchObject({
      state: 'warning',
      message: expect.stringMatching(/stored, but not handled: webhook\.test#fail \(dead\)/),
      fix: expect.stringMatching(/Read the last error of event/),
    });
  });

  it('AP-18 check() checks each company of a list, and the given company of a directory', async () => {
    const companies = ['acme', 'umbrella'];
    await using listed = await CheckedApplication.start(() => ({}), { companies });
    const tokens = await listed.check({ only: 'token' });
    expect(summary(tokens)).toEqual(['token acme ok', 'token umbrella ok']);

    await using found = await CheckedApplication.start(
      (emulator) => {
        const all = optionsOf(emulator).companies!;
        const find = (id: string) => all.find((company) => company.id === id);
        return { payments: { companies: { find } } };
      },
      { companies },
    );
    expect(summary(await found.check({ only: 'token' }))).toEqual(['token  skipped']);
    const given = await found.check({ company: 'umbrella', sendTest: true });
    expect(summary(given)).toEqual(
      expect.arrayContaining(['token umbrella ok', 'webhook umbrella ok']),
    );
    const [unknown] = await found.check({ only: 'settings', company: 'initech' });
    expect(unknown).toMatchObject({
      state: 'failed',
      message: 'There is no company with this id.',
    });
  });

  it('AP-18 no line of check() contains a secret, even if all checks fail', async () => {
    await using checked = await CheckedApplication.start(() => ({
      payments: { webhookSecret: 'whsec_wrong', clientSecret: 'client_secret_wrong' },
    }));
    const lines = [
      ...(await checked.check({ sendTest: true })),
      ...(await checked.check({ only: 'webhook', sendTest: true, timeoutMs: 500 })),
    ];
    const { clientSecret, webhookSecret } = checked.emulator.company;
    for (const secret of ['whsec_wrong', 'client_secret_wrong', clientSecret, webhookSecret]) {
      expect(JSON.stringify(lines)).not.toContain(secret);
    }
  });

  it('AP-18 "checkSetup" logs a line for each check at boot', async () => {
    await using checked = await CheckedApplication.start(() => ({
      payments: { checkSetup: true, clientSecret: 'wrong' },
    }));
    const { log } = checked.app;
    await eventually(() => expect(log.matching(/Check of the setup, webhook/)).toHaveLength(1));
    expect(log.matching(/Check of the setup, settings of company default: ok\./)).toHaveLength(1);
    expect(
      log.matching(/^error Check of the setup, token.*: failed\..*Check "baseUrl"/),
    ).toHaveLength(1);
    expect(checked.emulator.deliveries()).toEqual([]);
  });
});
