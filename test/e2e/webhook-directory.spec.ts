import type { Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Company, CompanyDirectory } from 'nestjs-payments';
import { PaymentInbox, PaymentsApiService } from 'nestjs-payments';
import { signedDelivery } from '../support/webhook/signed-delivery.js';
import { FakeRuntime } from '../support/time/fake-runtime.js';
import { until, eventually } from '../support/time/waiting.js';
import { RawConnection } from '../support/http/http-exchange.js';
import type { Answer } from '../support/http/http-exchange.js';
import { ADAPTERS, WebhookApplication, company } from '../support/webhook/webhook-application.js';
import { OnMethods } from '../support/webhook/webhook-controllers.js';

const ACME = company('acme', 'whsec_acme');

/** An application's directory, which counts how often it is asked. */
class Merchants implements CompanyDirectory {
  readonly asked: string[] = [];
  answer: (id: string) => unknown = (id) => (id === 'acme' ? ACME : undefined);

  async find(id: string): Promise<Company | undefined> {
    this.asked.push(id);
    return this.answer(id) as Promise<Company | undefined>;
  }
}

describe.each(Object.keys(ADAPTERS))('a company directory on %s', (adapter) => {
  let merchants: Merchants;
  let runtime: FakeRuntime;
  let app: WebhookApplication;
  beforeEach(async () => {
    merchants = new Merchants();
    runtime = new FakeRuntime();
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: merchants, runtime },
    });
    app.log.lines.length = 0;
  });
  afterEach(async () => app.app.close());
  const sendTo = async (id: string, from: Company = ACME): Promise<Answer> =>
    app.send(signedDelivery({ ...from, id }));

  it('WH-15 is called with the id in the path, and its answer is cached for 60 s', async () => {
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    runtime.advance(59_999);
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['acme']);
    runtime.advance(1);
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['acme', 'acme']);
  });

  it('causes no error in the log if the sender closes the connection before it answers', async () => {
    const lookup = Promise.withResolvers<Company>();
    merchants.answer = () => lookup.promise;
    const sender = await RawConnection.open(app.url);
    const { path, headers, text } = signedDelivery(ACME);
    const lines = Object.entries({ Host: 'shop', ...headers, 'Content-Length': text.length });
    await sender.write(
      [`POST ${path} HTTP/1.1`, ...lines.map((line) => line.join(': ')), '', text].join('\r\n'),
    );
    await until(() => merchants.asked.length === 1, 'the lookup');
    sender.socket.destroy();
    const server = app.app.getHttpServer() as Server;
    const connections = (): Promise<number> =>
      new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
    await eventually(async () => expect(await connections()).toBe(0));
    lookup.resolve(ACME);
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(app.log.lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  it.each([undefined, null])(
    'WH-15 causes 401 if it returns %p, and is called again after 5 s',
    async (nothing) => {
      merchants.answer = () => nothing;
      expect(await sendTo('bolt')).toMatchObject({
        status: 401,
        body: { code: 'company_unknown' },
      });
      merchants.answer = () => ({ ...ACME, id: 'bolt' });
      runtime.advance(4999);
      expect(await sendTo('bolt')).toMatchObject({ status: 401 });
      expect(merchants.asked).toEqual(['bolt']);
      runtime.advance(1);
      expect(await sendTo('bolt')).toMatchObject({ status: 200 });
      expect(app.log.matching(/^warn A delivery was refused \(company_unknown\)/)).toHaveLength(1);
    },
  );

  it('WH-15 is called with "default" if the path names no company', async () => {
    merchants.answer = (id) => (id === 'default' ? { ...ACME, id } : undefined);
    expect(await sendTo('default')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['default']);
  });

  it('SE-06 causes 503 if it throws, one log line, no detail for the sender, and is called again after a second', async () => {
    merchants.answer = () => {
      throw new RangeError('connection to 10.0.0.7 refused');
    };
    const answer = await sendTo('acme');
    expect(answer).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
    expect(answer.text).not.toMatch(/RangeError|10\.0\.0\.7/);
    expect(app.log.lines).toHaveLength(1);
    expect(app.log.lines[0]).toMatch(
      /^error .*acme.*RangeError: connection to 10\.0\.0\.7 refused/,
    );
    merchants.answer = () => ACME;
    runtime.advance(999);
    expect(await sendTo('acme')).toMatchObject({ status: 503 });
    expect(app.log.lines).toHaveLength(1);
    runtime.advance(1);
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['acme', 'acme']);
  });

  it.each([
    ['a string', () => Promise.reject('down')],
    ['undefined', () => Promise.reject(undefined)],
    ['no company', () => 'acme'],
    ['a company without a secret', () => ({ ...ACME, webhookSecret: '' })],
    ['a company with a bad address', () => ({ ...ACME, baseUrl: 'payments' })],
  ])('WH-15 causes 503 and one log line if it gives %s', async (_, answer) => {
    merchants.answer = answer;
    expect(await sendTo('acme')).toMatchObject({
      status: 503,
      body: { code: 'directory_unavailable', message: expect.stringContaining('log') },
    });
    expect(app.log.lines).toHaveLength(1);
    expect(app.log.lines[0]).toMatch(/^error .*acme/);
  });

  it('WH-15 is called once for deliveries that arrive at the same time', async () => {
    const waiting: ((found: Company) => void)[] = [];
    merchants.answer = async () => new Promise<Company>((resolve) => waiting.push(resolve));
    const answers = Promise.all(Array.from({ length: 20 }, async () => sendTo('acme')));
    await until(() => waiting.length > 0, 'the lookup');
    // A delivery for another company does not wait for it, and arrives after the twenty.
    merchants.answer = () => undefined;
    expect(await sendTo('bolt')).toMatchObject({ status: 401 });
    waiting[0]!(ACME);
    expect((await answers).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(merchants.asked).toEqual(['acme', 'bolt']);
  });

  it('SE-02 is called neither for deliveries without a signature nor for impossible ids', async () => {
    const delivery = signedDelivery(ACME);
    for (const header of [undefined, 'sha512=zz']) {
      const headers = { 'X-Webhook-Signature': header };
      expect(await app.send(delivery, { headers })).toMatchObject({ status: 401 });
    }
    for (const id of ['a%20b', 'a'.repeat(101), '%2e%2e', 'a%2Fb']) {
      const { status } = await app.send(delivery, { path: `/webhooks/payments/${id}` });
      expect([401, 404, 414]).toContain(status);
    }
    expect(merchants.asked).toEqual([]);
  });

  it("WH-15 may return an ORM's entity, whose fields are getters", async () => {
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
    merchants.answer = () => new Entity();
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    await expect(
      app.app.get(PaymentsApiService).forCompany('acme').get('/x'),
    ).rejects.toMatchObject({
      company: 'acme',
    });
  });

  it('WH-16 rotates a secret after its answer is a minute old', async () => {
    merchants.answer = () => ({ ...ACME, webhookSecret: ['whsec_next', 'whsec_acme'] });
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    merchants.answer = () => ({ ...ACME, webhookSecret: 'whsec_next' });
    runtime.advance(60_000);
    expect(await sendTo('acme')).toMatchObject({ status: 401 });
    expect(await sendTo('acme', company('acme', 'whsec_next'))).toMatchObject({ status: 200 });
  });

  const apiCall = async (id: string) => app.app.get(PaymentsApiService).forCompany(id).get('/x');
  const strangers = async (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, async (_, n) => sendTo(`${name}-${n}`)));

  it('SE-06 is called at most 50 times per second for companies without a valid delivery', async () => {
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    runtime.advance(60_000);
    merchants.asked.length = 0;
    app.log.lines.length = 0;
    const first = await strangers(100, 'first');
    expect(first.filter(({ status }) => status === 401)).toHaveLength(50);
    const refused = first.filter(({ status }) => status === 503);
    expect(refused).toHaveLength(50);
    expect(refused[0]).toMatchObject({
      headers: { 'retry-after': '1' },
      body: { code: 'directory_unavailable' },
    });
    expect(merchants.asked).toHaveLength(50);
    // Whose last answer has expired.
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    await Promise.allSettled(['bolt', 'cafe', 'dock'].map(apiCall));
    expect(merchants.asked.slice(50)).toEqual(['acme', 'bolt', 'cafe', 'dock']);
    runtime.advance(999);
    const second = await strangers(100, 'second');
    expect(second.map(({ status }) => status)).toEqual(Array(100).fill(503));
    expect(merchants.asked).toHaveLength(54);
    expect(app.log.matching(/PaymentCompanies|was refused/)).toHaveLength(2);
    expect(
      app.log.matching(/^warn .*more than 50 company lookups.*"webhook\.before"/),
    ).toHaveLength(1);
    runtime.advance(1);
    expect(await sendTo('bolt')).toMatchObject({ status: 401 });
  });

  it('SE-06 causes 503 and one log line per minute if it fails for every delivery', async () => {
    merchants.answer = async () => Promise.reject(new Error('connection refused'));
    for (const name of ['first', 'second', 'third']) {
      const answers = await strangers(60, name);
      expect(answers.every(({ status }) => status === 503)).toBe(true);
      runtime.advance(1000);
    }
    expect(merchants.asked).toHaveLength(150);
    expect(app.log.matching(/connection refused/)).toHaveLength(1);
    expect(app.log.matching(/company lookups/)).toHaveLength(1);
    expect(app.log.lines).toHaveLength(2);
  });

  it('SE-06 causes 503 within the deadline if it hangs, and is called again', async () => {
    merchants.answer = async () => new Promise(() => {});
    const delivery = sendTo('acme');
    await until(() => merchants.asked.length === 1, 'the lookup');
    runtime.advance(25_000);
    expect(await delivery).toMatchObject({ status: 503, body: { code: 'directory_unavailable' } });
    expect(app.log.lines).toEqual([expect.stringMatching(/^error .*no answer within 25000 ms/)]);
    runtime.advance(1000);
    merchants.answer = () => ACME;
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['acme', 'acme']);
  });

  it('SE-07 causes 401 and nothing stored if it returns a company with another id', async () => {
    // As a database does that ignores case.
    merchants.answer = (id) => (id.toLowerCase() === 'acme' ? ACME : undefined);
    const delivery = signedDelivery(ACME);
    for (const id of ['ACME', 'Acme', 'acmE']) {
      const answer = await app.send(delivery, { path: `/webhooks/payments/${id}` });
      expect(answer).toMatchObject({ status: 401, body: { code: 'company_unknown' } });
      expect(answer.text).not.toContain('acme');
    }
    expect(await app.app.get(PaymentInbox).list()).toMatchObject({ events: [] });
    expect(
      app.log.matching(/^warn .*"ACME" and answered a company with the id "acme"/),
    ).toHaveLength(1);
    expect(app.log.lines).toHaveLength(2);
    await expect(apiCall('ACME')).rejects.toMatchObject({
      code: 'company_unknown',
      message: expect.stringMatching(/"ACME" and answered.*"acme".*exactly the one asked for/),
    });
    expect(await app.send(delivery)).toMatchObject({ status: 200 });
  });

  it('SE-10 causes a log line if it returns two companies with the same webhook secret', async () => {
    merchants.answer = (id) => ({ ...ACME, id });
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(await sendTo('bolt')).toMatchObject({ status: 200 });
    expect(app.log.matching(/^warn .*"acme" and "bolt"/)).toHaveLength(1);
    expect(app.log.lines.join()).not.toContain('whsec_acme');
  });
});

describe.each(Object.keys(ADAPTERS))('a failing company directory on %s', (adapter) => {
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
