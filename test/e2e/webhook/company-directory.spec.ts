import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PaymentInbox, PaymentsApiService } from 'nestjs-payments';
import type { Company, CompanyDirectory } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import type { HttpResponse } from '../../support/http/http-exchange.js';
import {
  ADAPTERS,
  company,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';

/** The only company of the directory. */
const ACME = company('acme', 'whsec_acme');

/** A directory that records each call. */
class Merchants implements CompanyDirectory {
  readonly lookups: string[] = [];
  result: (id: string) => unknown = (id) => (id === 'acme' ? ACME : undefined);

  async find(id: string): Promise<Company | undefined> {
    this.lookups.push(id);
    return this.result(id) as Promise<Company | undefined>;
  }
}

/** An application with a {@link Merchants} directory, new for every test of a `describe`. */
interface DirectoryContext {
  merchants: Merchants;
  runtime: FakeRuntime;
  application: WebhookApplication;
  /** Sends a webhook request, signed for the company `from`, to the path of `id`. */
  sendTo(id: string, from?: Company): Promise<HttpResponse>;
}

/** Starts an application with a directory before each test. Call this function in a `describe`. */
function useDirectory(adapter: string): DirectoryContext {
  const context = {
    sendTo: async (id, from = ACME) => context.application.send(signedWebhook({ ...from, id })),
  } as DirectoryContext;
  beforeEach(async () => {
    context.merchants = new Merchants();
    context.runtime = new FakeRuntime();
    context.application = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: context.merchants, runtime: context.runtime },
    });
    context.application.log.lines.length = 0;
  });
  afterEach(async () => context.application.app.close());
  return context;
}

describe.each(Object.keys(ADAPTERS))('a company directory on %s', (adapter) => {
  const directory = useDirectory(adapter);

  it('WH-15 a company directory is called with the id in the path, and the returned company is cached for 60 s', async () => {
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    directory.runtime.advance(59_999);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['acme']);
    directory.runtime.advance(1);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['acme', 'acme']);
  });

  it.each([undefined, null])(
    'WH-15 a company directory that returns %p causes 401, and is called again after 5 s',
    async (nothing) => {
      directory.merchants.result = () => nothing;
      expect(await directory.sendTo('bolt')).toMatchObject({
        status: 401,
        body: { code: 'company_unknown' },
      });
      directory.merchants.result = () => ({ ...ACME, id: 'bolt' });
      directory.runtime.advance(4999);
      expect(await directory.sendTo('bolt')).toMatchObject({ status: 401 });
      expect(directory.merchants.lookups).toEqual(['bolt']);
      directory.runtime.advance(1);
      expect(await directory.sendTo('bolt')).toMatchObject({ status: 200 });
      expect(
        directory.application.log.matching(
          /^warn A webhook request was rejected \(company_unknown\)/,
        ),
      ).toHaveLength(1);
    },
  );

  it('WH-15 a company directory is called with "default" if the path names no company', async () => {
    directory.merchants.result = (id) => (id === 'default' ? { ...ACME, id } : undefined);
    expect(await directory.sendTo('default')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['default']);
  });

  it('SE-02 a company directory is not called for webhook requests without a signature or with an invalid company id', async () => {
    const signed = signedWebhook(ACME);
    for (const header of [undefined, 'sha512=zz']) {
      const headers = { 'X-Webhook-Signature': header };
      expect(await directory.application.send(signed, { headers })).toMatchObject({
        status: 401,
      });
    }
    for (const id of ['a%20b', 'a'.repeat(101), '%2e%2e', 'a%2Fb']) {
      const { status } = await directory.application.send(signed, {
        path: `/webhooks/payments/${id}`,
      });
      expect([401, 404, 414]).toContain(status);
    }
    expect(directory.merchants.lookups).toEqual([]);
  });

  it('WH-15 a company directory may return an ORM entity, whose fields are getters', async () => {
    class Entity {
      get id() {
        return 'acme';
      }
      get clientId() {
        return 'client';
      }
      get clientSecret() {
        return 'secret';
      }
      get webhookSecret() {
        return ['whsec_acme'];
      }
    }
    directory.merchants.result = () => new Entity();
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    await expect(
      directory.application.app.get(PaymentsApiService).forCompany('acme').get('/x'),
    ).rejects.toMatchObject({
      company: 'acme',
    });
  });

  it('SE-06 if a company directory throws, the response is 503 with one log line, and the directory is called again after 1 s', async () => {
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
});

describe('failures of a company directory', () => {
  const directory = useDirectory('express');

  const apiCall = async (id: string) =>
    directory.application.app.get(PaymentsApiService).forCompany(id).get('/x');
  const strangers = async (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, async (_, n) => directory.sendTo(`${name}-${n}`)));

  it.each([
    ['rejects with a string', () => Promise.reject('down')],
    ['returns a string', () => 'acme'],
    ['returns a company without a secret', () => ({ ...ACME, webhookSecret: '' })],
  ])('WH-15 a company directory that %s causes 503 and one log line', async (_, result) => {
    directory.merchants.result = result;
    expect(await directory.sendTo('acme')).toMatchObject({
      status: 503,
      body: { code: 'directory_unavailable', message: expect.stringContaining('log') },
    });
    expect(directory.application.log.lines).toHaveLength(1);
    expect(directory.application.log.lines[0]).toMatch(/^error .*acme/);
  });

  it('SE-06 a company directory is called at most 50 times per second for companies without a verified webhook request', async () => {
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
    // The cached company has expired. Its lookup is not limited, because a request for it had a valid signature.
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

  it('SE-07 a company directory that returns a company with another id causes 401, and nothing is stored', async () => {
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

  it('SE-06 a company directory is called at most "webhook.maxLookupsPerSecond" times per second', async () => {
    const merchants = new Merchants();
    await using app = await WebhookApplication.start({
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

describe.each(Object.keys(ADAPTERS))('a company directory with other options on %s', (adapter) => {
  it('SE-06 if a company directory throws, a controller of the application responds with 503 and Retry-After', async () => {
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
});
