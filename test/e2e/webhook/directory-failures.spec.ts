import { describe, expect, it } from '@jest/globals';
import { PaymentInbox, PaymentsApiService } from 'nestjs-payments';
import { ACME, Merchants, useDirectory } from '../../support/webhook/company-directory.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { until } from '../../support/time/waiting.js';
import { ADAPTERS, WebhookApplication } from '../../support/webhook/webhook-application.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';

describe.each(Object.keys(ADAPTERS))('failures of a company directory on %s', (adapter) => {
  const directory = useDirectory(adapter);

  const apiCall = async (id: string) =>
    directory.application.app.get(PaymentsApiService).forCompany(id).get('/x');
  const strangers = async (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, async (_, n) => directory.sendTo(`${name}-${n}`)));

  it('SE-06 a directory that throws causes 503 and one log line, and is called again after a second', async () => {
    directory.merchants.result = () => {
      throw new RangeError('connection to 10.0.0.7 refused');
    };
    const response = await directory.sendTo('acme');
    expect(response).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
    expect(response.text).not.toMatch(/RangeError|10\.0\.0\.7/);
    expect(directory.application.log.lines).toHaveLength(1);
    expect(directory.application.log.lines[0]).toMatch(
      /^error .*acme.*RangeError: connection to 10\.0\.0\.7 refused/,
    );
    directory.merchants.result = () => ACME;
    directory.runtime.advance(999);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 503 });
    expect(directory.application.log.lines).toHaveLength(1);
    directory.runtime.advance(1);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['acme', 'acme']);
  });

  it.each([
    ['a string', () => Promise.reject('down')],
    ['undefined', () => Promise.reject(undefined)],
    ['no company', () => 'acme'],
    ['a company without a secret', () => ({ ...ACME, webhookSecret: '' })],
    ['a company with a bad address', () => ({ ...ACME, baseUrl: 'payments' })],
  ])('WH-15 a directory that returns %s causes 503 and one log line', async (_, result) => {
    directory.merchants.result = result;
    expect(await directory.sendTo('acme')).toMatchObject({
      status: 503,
      body: { code: 'directory_unavailable', message: expect.stringContaining('log') },
    });
    expect(directory.application.log.lines).toHaveLength(1);
    expect(directory.application.log.lines[0]).toMatch(/^error .*acme/);
  });

  it('SE-06 a directory is called at most 50 times per second for companies without a valid signature', async () => {
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    directory.runtime.advance(60_000);
    directory.merchants.lookups.length = 0;
    directory.application.log.lines.length = 0;
    const first = await strangers(100, 'first');
    expect(first.filter(({ status }) => status === 401)).toHaveLength(50);
    const rejected = first.filter(({ status }) => status === 503);
    expect(rejected).toHaveLength(50);
    expect(rejected[0]).toMatchObject({
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
    expect(directory.merchants.lookups).toHaveLength(50);
    // Its cached company has expired.
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    await Promise.allSettled(['bolt', 'cafe', 'dock'].map(apiCall));
    expect(directory.merchants.lookups.slice(50)).toEqual(['acme', 'bolt', 'cafe', 'dock']);
    directory.runtime.advance(999);
    const second = await strangers(100, 'second');
    expect(second.map(({ status }) => status)).toEqual(Array(100).fill(503));
    expect(directory.merchants.lookups).toHaveLength(54);
    expect(directory.application.log.matching(/PaymentCompanies|was rejected/)).toHaveLength(2);
    expect(
      directory.application.log.matching(/^warn .*more than 50 company lookups.*"webhook\.before"/),
    ).toHaveLength(1);
    directory.runtime.advance(1);
    expect(await directory.sendTo('bolt')).toMatchObject({ status: 401 });
  });

  it('SE-06 a directory that fails for every webhook request causes 503 and one log line per minute', async () => {
    directory.merchants.result = async () => Promise.reject(new Error('connection refused'));
    for (const name of ['first', 'second', 'third']) {
      const responses = await strangers(60, name);
      expect(responses.every(({ status }) => status === 503)).toBe(true);
      directory.runtime.advance(1000);
    }
    expect(directory.merchants.lookups).toHaveLength(150);
    expect(directory.application.log.matching(/connection refused/)).toHaveLength(1);
    expect(directory.application.log.matching(/company lookups/)).toHaveLength(1);
    expect(directory.application.log.lines).toHaveLength(2);
  });

  it('SE-06 a directory that hangs causes 503 within the deadline, and is called again', async () => {
    directory.merchants.result = async () => new Promise(() => {});
    const response = directory.sendTo('acme');
    await until(() => directory.merchants.lookups.length === 1, 'the lookup');
    directory.runtime.advance(25_000);
    expect(await response).toMatchObject({ status: 503, body: { code: 'directory_unavailable' } });
    expect(directory.application.log.lines).toEqual([
      expect.stringMatching(/^error .*no result within 25000 ms/),
    ]);
    directory.runtime.advance(1000);
    directory.merchants.result = () => ACME;
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['acme', 'acme']);
  });

  it('SE-07 a directory that returns a company with another id causes 401, and nothing is stored', async () => {
    // This directory ignores case, as some databases do.
    directory.merchants.result = (id) => (id.toLowerCase() === 'acme' ? ACME : undefined);
    const signed = signedWebhook(ACME);
    for (const id of ['ACME', 'Acme', 'acmE']) {
      const response = await directory.application.send(signed, {
        path: `/webhooks/payments/${id}`,
      });
      expect(response).toMatchObject({ status: 401, body: { code: 'company_unknown' } });
      expect(response.text).not.toContain('acme');
    }
    expect(await directory.application.app.get(PaymentInbox).list()).toMatchObject({ events: [] });
    expect(
      directory.application.log.matching(
        /^warn .*id "ACME", .*returned a company with the id "acme"/,
      ),
    ).toHaveLength(1);
    expect(directory.application.log.lines).toHaveLength(2);
    await expect(apiCall('ACME')).rejects.toMatchObject({
      code: 'company_unknown',
      message: expect.stringMatching(
        /id "ACME", .*returned.*"acme".*exactly the id that was passed in/,
      ),
    });
    expect(await directory.application.send(signed)).toMatchObject({ status: 200 });
  });

  it('SE-10 a directory that returns two companies with the same webhook secret causes a log line', async () => {
    directory.merchants.result = (id) => ({ ...ACME, id });
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(await directory.sendTo('bolt')).toMatchObject({ status: 200 });
    expect(directory.application.log.matching(/^warn .*"acme" and "bolt"/)).toHaveLength(1);
    expect(directory.application.log.lines.join()).not.toContain('whsec_acme');
  });
});

describe.each(Object.keys(ADAPTERS))('a company directory with other options on %s', (adapter) => {
  it('SE-06 a directory that throws causes 503 with Retry-After in a controller of the application', async () => {
    const merchants = new Merchants();
    merchants.result = () => {
      throw new Error('connection refused');
    };
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: merchants, webhookPath: false },
      controllers: [OnMethods],
    });
    expect(await app.send(signedWebhook(ACME), { path: '/method' })).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
  });

  it('SE-06 a directory is called at most "webhook.maxLookupsPerSecond" times per second', async () => {
    const merchants = new Merchants();
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: {
        companies: merchants,
        runtime: new FakeRuntime(),
        webhook: { maxLookupsPerSecond: 2 },
      },
    });
    for (const status of [401, 401, 503, 503]) {
      const id = `stranger-${merchants.lookups.length}-${status}`;
      expect(await app.send(signedWebhook({ ...ACME, id }))).toMatchObject({ status });
    }
    expect(merchants.lookups).toHaveLength(2);
  });
});
