import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Company, CompanyDirectory } from 'nestjs-payments';
import { PaymentsApiService } from 'nestjs-payments';
import { signedDelivery } from '../support/signed-delivery.js';
import { FakeRuntime, until } from '../support/fake.runtime.js';
import type { Answer } from '../support/http.exchange.js';
import { ADAPTERS, WebhookApplication, company } from '../support/webhook.application.js';

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

  it('15: is asked by the id in the path, and what it says is kept for 60 s', async () => {
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    runtime.advance(59_999);
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['acme']);
    runtime.advance(1);
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['acme', 'acme']);
  });

  it.each([undefined, null])(
    '15: says 401 where it answers %p, and asks again after 5 s',
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

  it('15: is asked for "default" where the path names no company', async () => {
    merchants.answer = (id) => (id === 'default' ? ACME : undefined);
    expect(await sendTo('default')).toMatchObject({ status: 200 });
    expect(merchants.asked).toEqual(['default']);
  });

  it('15: answers 503 where it throws, logs why once, tells the sender nothing, and asks again next time', async () => {
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
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
  });

  it.each([
    ['a string', () => Promise.reject('down')],
    ['undefined', () => Promise.reject(undefined)],
    ['no company', () => 'acme'],
    ['a company without a secret', () => ({ ...ACME, webhookSecret: '' })],
    ['a company with a bad address', () => ({ ...ACME, baseUrl: 'payments' })],
  ])('15: answers 503 and logs one line where it gives %s', async (_, answer) => {
    merchants.answer = answer;
    expect(await sendTo('acme')).toMatchObject({
      status: 503,
      body: { code: 'directory_unavailable', message: expect.stringContaining('log') },
    });
    expect(app.log.lines).toHaveLength(1);
    expect(app.log.lines[0]).toMatch(/^error .*acme/);
  });

  it('15: is asked once by all who come at the same moment', async () => {
    const waiting: ((found: Company) => void)[] = [];
    merchants.answer = async () => new Promise<Company>((resolve) => waiting.push(resolve));
    const answers = Promise.all(Array.from({ length: 20 }, async () => sendTo('acme')));
    await until(() => waiting.length > 0, 'the look-up');
    // A delivery to another company is not held up by it, and comes when the twenty are all there.
    merchants.answer = () => undefined;
    expect(await sendTo('bolt')).toMatchObject({ status: 401 });
    waiting[0]!(ACME);
    expect((await answers).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(merchants.asked).toEqual(['acme', 'bolt']);
  });

  it('15: is not asked by those who do not even sign, nor for what can be no id', async () => {
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

  it("15: takes an ORM's entity, whose fields are getters, and keeps to the id that was asked for", async () => {
    class Entity {
      get id() {
        return 'row-17';
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

  it('16: rotates a secret once its answer is a minute old', async () => {
    merchants.answer = () => ({ ...ACME, webhookSecret: ['whsec_next', 'whsec_acme'] });
    expect(await sendTo('acme')).toMatchObject({ status: 200 });
    merchants.answer = () => ({ ...ACME, webhookSecret: 'whsec_next' });
    runtime.advance(60_000);
    expect(await sendTo('acme')).toMatchObject({ status: 401 });
    expect(await sendTo('acme', company('acme', 'whsec_next'))).toMatchObject({ status: 200 });
  });
});
