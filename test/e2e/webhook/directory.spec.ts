import type { Server } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import type { Company } from 'nestjs-payments';
import { PaymentsApiService } from 'nestjs-payments';
import { ACME, useDirectory } from '../../support/webhook/company-directory.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { until, eventually } from '../../support/time/waiting.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import { ADAPTERS, company } from '../../support/webhook/webhook-application.js';

describe.each(Object.keys(ADAPTERS))('a company directory on %s', (adapter) => {
  const directory = useDirectory(adapter);

  it('WH-15 a directory is called with the id in the path, and its company is cached for 60 s', async () => {
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    directory.runtime.advance(59_999);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['acme']);
    directory.runtime.advance(1);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['acme', 'acme']);
  });

  it('no error is logged if the sender closes the connection before the directory returns', async () => {
    const lookup = Promise.withResolvers<Company>();
    directory.merchants.result = () => lookup.promise;
    const sender = await RawConnection.open(directory.application.url);
    const { path, headers, text } = signedWebhook(ACME);
    const lines = Object.entries({ Host: 'shop', ...headers, 'Content-Length': text.length });
    await sender.write(
      [`POST ${path} HTTP/1.1`, ...lines.map((line) => line.join(': ')), '', text].join('\r\n'),
    );
    await until(() => directory.merchants.lookups.length === 1, 'the lookup');
    sender.socket.destroy();
    const server = directory.application.app.getHttpServer() as Server;
    const connections = (): Promise<number> =>
      new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
    await eventually(async () => expect(await connections()).toBe(0));
    lookup.resolve(ACME);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    expect(directory.application.log.lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  it.each([undefined, null])(
    'WH-15 a directory that returns %p causes 401, and is called again after 5 s',
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

  it('WH-15 a directory is called with "default" if the path names no company', async () => {
    directory.merchants.result = (id) => (id === 'default' ? { ...ACME, id } : undefined);
    expect(await directory.sendTo('default')).toMatchObject({ status: 200 });
    expect(directory.merchants.lookups).toEqual(['default']);
  });

  it('WH-15 a directory is called once for webhook requests that arrive at the same time', async () => {
    const waiting: ((found: Company) => void)[] = [];
    directory.merchants.result = async () =>
      new Promise<Company>((resolve) => waiting.push(resolve));
    const responses = Promise.all(Array.from({ length: 20 }, async () => directory.sendTo('acme')));
    await until(() => waiting.length > 0, 'the lookup');
    // A webhook request for another company does not wait for the lookup, and is sent after the twenty.
    directory.merchants.result = () => undefined;
    expect(await directory.sendTo('bolt')).toMatchObject({ status: 401 });
    waiting[0]!(ACME);
    expect((await responses).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(directory.merchants.lookups).toEqual(['acme', 'bolt']);
  });

  it('SE-02 a directory is not called for webhook requests without a signature or with an invalid id', async () => {
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

  it('WH-15 a directory may return an ORM entity, whose fields are getters', async () => {
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

  it('WH-16 a new secret from a directory is accepted when the cached company is a minute old', async () => {
    directory.merchants.result = () => ({ ...ACME, webhookSecret: ['whsec_next', 'whsec_acme'] });
    expect(await directory.sendTo('acme')).toMatchObject({ status: 200 });
    directory.merchants.result = () => ({ ...ACME, webhookSecret: 'whsec_next' });
    directory.runtime.advance(60_000);
    expect(await directory.sendTo('acme')).toMatchObject({ status: 401 });
    expect(await directory.sendTo('acme', company('acme', 'whsec_next'))).toMatchObject({
      status: 200,
    });
  });
});
