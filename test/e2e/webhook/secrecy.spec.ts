import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, HttpCode, Injectable, Post, Req, UseGuards } from '@nestjs/common';
import {
  OnPaymentEvent,
  PaymentInbox,
  PaymentsApiService,
  PaymentsError,
  WebhookGuard,
  signBody,
  verifySignature,
} from 'nestjs-payments';
import type { CompanyDirectory, InboxReceipt } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { resolveCompany } from '../../../libs/payments/src/companies/company.js';
import { resolveOptions } from '../../../libs/payments/src/payments-options.js';
import type { HttpResponse } from '../../support/http/http-exchange.js';
import { Receiving } from '../../support/webhook/webhook-controllers.js';
import type { Request } from '../../support/webhook/webhook-controllers.js';
import {
  ADAPTERS,
  OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const WEBHOOK_SECRET = 'whsec_Zm9vYmFy';
const CLIENT_SECRET = 'client-secret-9b1d';
const PAYLOAD = 'payload-of-somebody';
const ACME = {
  id: 'acme',
  clientId: 'client',
  clientSecret: CLIENT_SECRET,
  webhookSecret: [WEBHOOK_SECRET, `${WEBHOOK_SECRET}_old`],
};
const COMPANY = { ...ACME, baseUrl: OPTIONS.baseUrl };

/** The text of a value in a log, in a response and in a debugger. */
function shown(value: unknown): string {
  const options = { depth: Infinity, maxArrayLength: null, maxStringLength: null };
  return `${String(value)} ${JSON.stringify(value)} ${inspect(value, options)}`;
}

function expectNoSecretIn(text: string, signature?: string): void {
  const hex = (words: string) => Buffer.from(words).toString('hex');
  const base64 = (words: string) => Buffer.from(words).toString('base64').slice(0, -3);
  for (const secret of [WEBHOOK_SECRET, CLIENT_SECRET, PAYLOAD]) {
    expect(text).not.toContain(secret);
    expect(text.replaceAll(' ', '')).not.toContain(hex(secret));
    expect(text).not.toContain(base64(secret));
  }
  if (signature !== undefined) expect(text).not.toContain(signature.slice(7, 27));
}

const kept: { request?: Request; errors: unknown[] } = { errors: [] };

@Controller('own')
class Own extends Receiving {
  @Post(':company')
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async receive(@Req() request: Request): Promise<InboxReceipt> {
    kept.request = request;
    try {
      return await this.take(request);
    } catch (error) {
      kept.errors.push(error);
      throw error;
    }
  }
}

@Injectable()
class Failing {
  @OnPaymentEvent('payout.failed')
  fail(): never {
    throw new Error('the bank said no');
  }
}

describe.each(Object.keys(ADAPTERS))('secrecy on %s', (adapter) => {
  let app: WebhookApplication;
  beforeAll(async () => {
    kept.errors.length = 0;
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: [COMPANY], webhook: { bodyLimitBytes: 4096 } },
      controllers: [Own],
      providers: [Failing],
    });
  });
  afterAll(async () => app.app.close());

  const data = { note: PAYLOAD };
  const good = () => signedWebhook(COMPANY, { data });
  const cases: Record<string, (path: string) => Promise<HttpResponse>> = {
    'a request without a signature': async (path) =>
      app.send(good(), { path, headers: { 'X-Webhook-Signature': undefined } }),
    'a wrong signature': async (path) =>
      app.send(signedWebhook({ webhookSecret: 'x' }, good().body), { path }),
    'a body that is not an envelope': async (path) =>
      app.send(signedWebhook(COMPANY, { data, id: `${PAYLOAD}\n` }), { path }),
    'a body that is not JSON': async (path) =>
      app.send(signedWebhook(COMPANY, `{"${PAYLOAD}": ${PAYLOAD}`), { path }),
    'a body that is too large': async (path) =>
      app.send(signedWebhook(COMPANY, { data: { note: PAYLOAD.repeat(300) } }), { path }),
    'another content type': async (path) =>
      app.send(good(), { path, headers: { 'Content-Type': 'text/xml' } }),
    'an encoded body': async (path) =>
      app.send(good(), { path, headers: { 'Content-Encoding': 'br' } }),
    'an unknown company': async (path) => app.send(good(), { path: path.replace('acme', 'bolt') }),
    'a forged event type': async (path) =>
      app.send(good(), { path, headers: { 'X-Webhook-Event': PAYLOAD } }),
    'a handler that fails': async (path) =>
      app.send(signedWebhook(COMPANY, { data, eventType: 'payout.failed' }), { path }),
    'the same event with another body': async (path) => {
      await app.send(signedWebhook(COMPANY, { id: 'e-1', data }), { path });
      return app.send(signedWebhook(COMPANY, { id: 'e-1', data: { note: `${PAYLOAD}!` } }), {
        path,
      });
    },
  };

  it.each(Object.keys(cases))(
    'WH-02 response and log contain no secret, signature or payload for %s',
    async (name) => {
      for (const path of ['/webhooks/payments/acme', '/own/acme']) {
        app.log.lines.length = 0;
        const response = await cases[name]!(path);
        const expected = signBody(good().body, WEBHOOK_SECRET);
        expectNoSecretIn(response.text + JSON.stringify(response.headers), expected);
        expectNoSecretIn(app.log.lines.join('\n'), expected);
      }
    },
  );

  it('WH-02 a printed event, error or provider shows no secret, signature or payload', async () => {
    await app.send(good(), { path: '/own/acme' });
    await app.send(signedWebhook(COMPANY, { data, eventType: 'payout.failed' }), {
      path: '/own/acme',
    });
    const { request, errors } = kept;
    expectNoSecretIn(shown(request!.verifiedEvent));
    expect(shown(request!.verifiedEvent)).toContain('acme');
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) expectNoSecretIn(shown(error));
    for (const provider of [PaymentInbox, PaymentsApiService, WebhookGuard]) {
      expectNoSecretIn(inspect(app.app.get(provider), { depth: 20 }));
    }
  });
});

describe('secrecy of printed values', () => {
  it.each([undefined, 'sha512=zz', signBody(Buffer.from('other'), WEBHOOK_SECRET)])(
    'Signature: the error for the signature header %p shows no part of the header',
    (header) => {
      const body = Buffer.from(PAYLOAD);
      let error: unknown;
      try {
        verifySignature(body, header, [WEBHOOK_SECRET]);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(PaymentsError);
      expectNoSecretIn(shown(error), signBody(body, WEBHOOK_SECRET));
      if (header !== undefined && header.length > 20) expectNoSecretIn(shown(error), header);
    },
  );

  it('SE-12 util.inspect() and JSON.stringify() show only the id and the address of a company', () => {
    const company = resolveCompany(COMPANY);
    expectNoSecretIn(shown(company));
    expect(JSON.parse(JSON.stringify(company))).toEqual({ id: 'acme', baseUrl: OPTIONS.baseUrl });
    expect(inspect(company)).toBe(`ResolvedCompany { id: 'acme', baseUrl: '${OPTIONS.baseUrl}' }`);
  });

  it('SE-12 printed lists and directories of companies show no secret', async () => {
    const directory: CompanyDirectory & { rows: object[] } = { rows: [ACME], find: () => ACME };
    const { clientId, clientSecret, webhookSecret } = ACME;
    for (const options of [
      { companies: [ACME] },
      { companies: directory },
      { clientId, clientSecret, webhookSecret },
    ]) {
      const resolved = resolveOptions({ baseUrl: OPTIONS.baseUrl, ...options });
      await resolved.companies.find('acme');
      expectNoSecretIn(shown(resolved));
    }
  });
});
