import { describe, expect, it } from '@jest/globals';
import { PaymentInbox, PaymentsApiService } from 'nestjs-payments';
import { ACME, Merchants, useDirectory } from '../support/webhook/company-directory.js';
import { signedDelivery } from '../support/webhook/signed-delivery.js';
import { FakeRuntime } from '../support/time/fake-runtime.js';
import { until } from '../support/time/waiting.js';
import { ADAPTERS, WebhookApplication } from '../support/webhook/webhook-application.js';
import { OnMethods } from '../support/webhook/webhook-controllers.js';

describe.each(Object.keys(ADAPTERS))('failures of a company directory on %s', (adapter) => {
  const directory = useDirectory(adapter);

  const apiCall = async (id: string) =>
    directory.application.app.get(PaymentsApiService).forCompany(id).get('/x');
  const strangers = async (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, async (_, n) => directory.sendTo(`${name}-${n}`)));

  it('SE-06 causes 503 if it throws, one log line, no detail for the sender, and is called again after a second', async () => {
    directory.merchants.answer = () => {
      throw new RangeError('connection to 10.0.0.7 refused');
    };
    const answer = await directory.sendTo('acme');
    expect(answer).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
    expect(answer.text).not.toMatch(/RangeError|10\.0\.0\.7/);
    expect(directory.application.log.lines).toHaveLength(1);
    expect(directory.application.log.lines[0]).toMatch(
      /^error .*acme.*RangeError: connection to 10\.0\.0\.7 refused/,
    );
    directory.merchants.answer = () => ACME;
    directory.runtime.advance(999);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 503 });
    expect(directory.application.log.lines).toHaveLength(1);
    directory.runtime.advance(1);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.asked).toEqual(['acme', 'acme']);
  });

  it.each([
    ['a string', () => Promise.reject('down')],
    ['undefined', () => Promise.reject(undefined)],
    ['no company', () => 'acme'],
    ['a company without a secret', () => ({ ...ACME, webhookSecret: '' })],
    ['a company with a bad address', () => ({ ...ACME, baseUrl: 'payments' })],
  ])('WH-15 causes 503 and one log line if it gives %s', async (_, answer) => {
    directory.merchants.answer = answer;
    expect(await directory.sendTo('acme')).toMatchObject({
      status: 503,
      body: { code: 'directory_unavailable', message: expect.stringContaining('log') },
    });
    expect(directory.application.log.lines).toHaveLength(1);
    expect(directory.application.log.lines[0]).toMatch(/^error .*acme/);
  });

  it('SE-06 is called at most 50 times per second for companies without a valid delivery', async () => {
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    directory.runtime.advance(60_000);
    directory.merchants.asked.length = 0;
    directory.application.log.lines.length = 0;
    const first = await strangers(100, 'first');
    expect(first.filter(({ status }) => status === 401)).toHaveLength(50);
    const refused = first.filter(({ status }) => status === 503);
    expect(refused).toHaveLength(50);
    expect(refused[0]).toMatchObject({
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
    expect(directory.merchants.asked).toHaveLength(50);
    // Whose last answer has expired.
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    await Promise.allSettled(['bolt', 'cafe', 'dock'].map(apiCall));
    expect(directory.merchants.asked.slice(50)).toEqual(['acme', 'bolt', 'cafe', 'dock']);
    directory.runtime.advance(999);
    const second = await strangers(100, 'second');
    expect(second.map(({ status }) => status)).toEqual(Array(100).fill(503));
    expect(directory.merchants.asked).toHaveLength(54);
    expect(directory.application.log.matching(/PaymentCompanies|was rejected/)).toHaveLength(2);
    expect(
      directory.application.log.matching(/^warn .*more than 50 company lookups.*"webhook\.before"/),
    ).toHaveLength(1);
    directory.runtime.advance(1);
    expect(await directory.sendTo('bolt')).toMatchObject({ status: 401 });
  });

  it('SE-06 causes 503 and one log line per minute if it fails for every delivery', async () => {
    directory.merchants.answer = async () => Promise.reject(new Error('connection refused'));
    for (const name of ['first', 'second', 'third']) {
      const answers = await strangers(60, name);
      expect(answers.every(({ status }) => status === 503)).toBe(true);
      directory.runtime.advance(1000);
    }
    expect(directory.merchants.asked).toHaveLength(150);
    expect(directory.application.log.matching(/connection refused/)).toHaveLength(1);
    expect(directory.application.log.matching(/company lookups/)).toHaveLength(1);
    expect(directory.application.log.lines).toHaveLength(2);
  });

  it('SE-06 causes 503 within the deadline if it hangs, and is called again', async () => {
    directory.merchants.answer = async () => new Promise(() => {});
    const delivery = directory.sendTo('acme');
    await until(() => directory.merchants.asked.length === 1, 'the lookup');
    directory.runtime.advance(25_000);
    expect(await delivery).toMatchObject({ status: 503, body: { code: 'directory_unavailable' } });
    expect(directory.application.log.lines).toEqual([
      expect.stringMatching(/^error .*no answer within 25000 ms/),
    ]);
    directory.runtime.advance(1000);
    directory.merchants.answer = () => ACME;
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.asked).toEqual(['acme', 'acme']);
  });

  it('SE-07 causes 401 and nothing stored if it returns a company with another id', async () => {
    // As a database does that ignores case.
    directory.merchants.answer = (id) => (id.toLowerCase() === 'acme' ? ACME : undefined);
    const delivery = signedDelivery(ACME);
    for (const id of ['ACME', 'Acme', 'acmE']) {
      const answer = await directory.application.send(delivery, {
        path: `/webhooks/payments/${id}`,
      });
      expect(answer).toMatchObject({ status: 401, body: { code: 'company_unknown' } });
      expect(answer.text).not.toContain('acme');
    }
    expect(await directory.application.app.get(PaymentInbox).list()).toMatchObject({ events: [] });
    expect(
      directory.application.log.matching(
        /^warn .*"ACME" and answered a company with the id "acme"/,
      ),
    ).toHaveLength(1);
    expect(directory.application.log.lines).toHaveLength(2);
    await expect(apiCall('ACME')).rejects.toMatchObject({
      code: 'company_unknown',
      message: expect.stringMatching(/"ACME" and answered.*"acme".*exactly the one asked for/),
    });
    expect(await directory.application.send(delivery)).toMatchObject({ status: 200 });
  });

  it('SE-10 causes a log line if it returns two companies with the same webhook secret', async () => {
    directory.merchants.answer = (id) => ({ ...ACME, id });
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(await directory.sendTo('bolt')).toMatchObject({ status: 200 });
    expect(directory.application.log.matching(/^warn .*"acme" and "bolt"/)).toHaveLength(1);
    expect(directory.application.log.lines.join()).not.toContain('whsec_acme');
  });
});

describe.each(Object.keys(ADAPTERS))('a company directory with other options on %s', (adapter) => {
  it('SE-06 causes 503 with Retry-After in a controller of the application', async () => {
    const merchants = new Merchants();
    merchants.answer = () => {
      throw new Error('connection refused');
    };
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: merchants, webhookPath: false },
      controllers: [OnMethods],
    });
    expect(await app.send(signedDelivery(ACME), { path: '/method' })).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
  });

  it('SE-06 is called at most "webhook.maxLookupsPerSecond" times per second', async () => {
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
      const id = `stranger-${merchants.asked.length}-${status}`;
      expect(await app.send(signedDelivery({ ...ACME, id }))).toMatchObject({ status });
    }
    expect(merchants.asked).toHaveLength(2);
  });
});
