import type { Server } from 'node:http';
import { Controller, HttpCode, Module, Post, Req, UseGuards, VersioningType } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import { OnPaymentEvent, PaymentInbox, PaymentsModule, WebhookGuard } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, VerifiedRequest } from 'nestjs-payments';
import { deliver, paymentEvent } from 'nestjs-payments/testing';
import {
  ADAPTER_OPTIONS,
  ADAPTERS,
  BODY_OPTIONS,
  company,
  OPTIONS,
} from '../../support/webhook/webhook-application.js';
import type { Setup } from '../../support/webhook/webhook-application.js';

const EVENT = paymentEvent('transaction.completed', { externalReference: 'order-1' });

class Orders {
  readonly seen: { event: PaymentEvent; company: string }[] = [];

  @OnPaymentEvent('transaction.completed')
  take(event: PaymentEvent, { company }: PaymentEventContext): void {
    this.seen.push({ event, company });
  }
}

@Controller({ path: 'hooks', version: '2' })
class Hooks {
  constructor(private readonly inbox: PaymentInbox) {}

  @Post()
  @HttpCode(202)
  @UseGuards(WebhookGuard)
  own(@Req() request: VerifiedRequest) {
    return this.inbox.receive(request.verifiedEvent);
  }

  @Post('of/:company')
  @HttpCode(202)
  @UseGuards(WebhookGuard)
  named(@Req() request: VerifiedRequest) {
    return this.inbox.receive(request.verifiedEvent);
  }
}
Reflect.defineMetadata('design:paramtypes', [PaymentInbox], Hooks);

describe.each(ADAPTER_OPTIONS)('deliver(), $adapter, $option', ({ adapter, option }) => {
  let app: INestApplication | undefined;

  afterEach(async () => app?.close());

  async function create(
    { payments, main, ...metadata }: Setup = {},
    init = true,
  ): Promise<INestApplication> {
    const options = payments && payments.companies ? { baseUrl: OPTIONS.baseUrl } : OPTIONS;
    @Module({
      ...metadata,
      imports: [PaymentsModule.forRoot({ ...options, ...payments })],
      providers: [Orders],
    })
    class App {}
    app = await NestFactory.create(App, ADAPTERS[adapter]!(), {
      logger: false,
      ...BODY_OPTIONS[option],
    });
    await main?.(app);
    if (init) await app.init();
    return app;
  }

  const seen = (): Orders['seen'] => app!.get(Orders).seen;

  it('AP-12 deliver() works with an application that does not listen', async () => {
    await create();
    const { status, headers, body } = await deliver(app!, EVENT);
    expect({ status, body }).toEqual({
      status: 200,
      body: { received: true, status: 'handled', id: EVENT.id },
    });
    expect(headers['content-type']).toContain('application/json');
    expect(seen()).toEqual([{ event: EVENT, company: 'default' }]);
    expect((app!.getHttpServer() as Server).listening).toBe(false);
  });

  it('AP-12 deliver() finds the route with a global prefix, a URI version and a webhookPath', async () => {
    await create({
      payments: { webhookPath: 'money/in' },
      main: (application) => {
        application.setGlobalPrefix('api/v9');
        application.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      },
    });
    expect(await deliver(app!, EVENT)).toMatchObject({ status: 200 });
    expect(seen()).toHaveLength(1);
  });

  it('AP-12 deliver() finds the route of a controller with WebhookGuard', async () => {
    await create({
      controllers: [Hooks],
      payments: {
        webhookPath: false,
        companies: [company('acme', 'whsec_a'), company('bolt', 'whsec_b')],
      },
      main: (application) => {
        application.setGlobalPrefix('api');
        application.enableVersioning({ type: VersioningType.URI });
      },
    });
    expect(await deliver(app!, EVENT, { company: 'bolt' })).toMatchObject({ status: 202 });
    expect(await deliver(app!, EVENT, { secret: 'whsec_a' })).toMatchObject({ status: 401 });
    expect(seen()).toEqual([{ event: EVENT, company: 'bolt' }]);
  });

  it('AP-12 deliver() signs with the current secret of the given company', async () => {
    await create({
      payments: {
        companies: [company('acme', 'whsec_a'), company('bolt', ['whsec_b', 'whsec_old'])],
      },
    });
    await deliver(app!, EVENT, { company: 'acme' });
    await deliver(app!, EVENT, { company: 'bolt' });
    expect(seen().map((delivered) => delivered.company)).toEqual(['acme', 'bolt']);
    const other = { company: 'acme', secret: 'whsec_b' };
    expect(await deliver(app!, paymentEvent('transaction.completed'), other)).toMatchObject({
      status: 401,
      body: { code: 'signature_mismatch' },
    });
    await expect(deliver(app!, EVENT)).rejects.toThrow('no company "default"');
    await expect(deliver(app!, EVENT, { company: 'nobody' })).rejects.toThrow(
      'no company "nobody"',
    );
  });

  it('AP-12 deliver() sends given bytes, text and headers unchanged', async () => {
    await create();
    expect(await deliver(app!, '{"id":1}')).toMatchObject({
      status: 400,
      body: { code: 'payload_invalid' },
    });
    expect(await deliver(app!, Buffer.from([0xff, 0x00]))).toMatchObject({ status: 400 });
    const unsigned = { headers: { 'x-webhook-signature': undefined } };
    expect(await deliver(app!, EVENT, unsigned)).toMatchObject({
      status: 401,
      body: { code: 'signature_missing' },
    });
    const large = paymentEvent(
      'transaction.completed',
      {},
      { metadata: { pad: 'x'.repeat(2 ** 20) } },
    );
    expect(await deliver(app!, large)).toMatchObject({ status: 413 });
    expect(seen()).toEqual([]);
  });

  it('AP-12 deliver() works with an application that listens', async () => {
    await create();
    await app!.listen(0, '127.0.0.1');
    expect(await deliver(app!, EVENT)).toMatchObject({ status: 200 });
    expect(seen()).toHaveLength(1);
  });

  it('AP-12 deliver() initialises an application that is not initialised', async () => {
    await create({}, false);
    expect(await deliver(app!, EVENT)).toMatchObject({ status: 200 });
  });

  it('AP-12 deliver() rejects if the application closes the connection without a response', async () => {
    await create({
      main: (application) => {
        const server = application.getHttpServer() as Server;
        server.prependListener('request', (request) => request.destroy());
      },
    });
    await expect(deliver(app!, EVENT)).rejects.toThrow('without a response');
  });
});

declare module 'nestjs-payments' {
  interface PaymentEventMap {
    'kit.types.settled': { payoutId: string };
    'kit.types.noted': { note?: string };
  }
}

it('AP-11 paymentEvent() requires data if PaymentEventMap declares required fields for the type', () => {
  expect(paymentEvent('kit.types.settled', { payoutId: 'p-1' }).data.payoutId).toBe('p-1');
  expect(paymentEvent('kit.types.noted').data.note).toBeUndefined();
  // @ts-expect-error data is required
  expect(paymentEvent('kit.types.settled').data).toEqual({});
  // @ts-expect-error payoutId is required
  expect(paymentEvent('kit.types.settled', {}).data).toEqual({});
});
