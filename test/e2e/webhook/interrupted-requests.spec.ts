import type { Server } from 'node:http';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { INestApplication } from '@nestjs/common';
import type { Company, WebhookOptions } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { turns, until } from '../../support/time/waiting.js';
import { Gate } from '../../support/time/gate.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import { bytesOf } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import {
  ADAPTERS,
  SECRET,
  WebhookApplication,
  company,
} from '../../support/webhook/webhook-application.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';

const ACME = company('acme', SECRET);

interface FastifyInstance {
  addHook(name: string, hook: (request: object, reply: object, payload: Readable) => unknown): void;
}

describe.each(Object.keys(ADAPTERS))('interrupted requests on %s', (adapter) => {
  const runtime = new FakeRuntime();
  /** Each ends a lookup of a company. */
  let lookups: (() => void)[];
  let app: WebhookApplication;
  const start = async (
    webhook: WebhookOptions = {},
    main: (application: INestApplication) => void = () => {},
  ): Promise<void> => {
    lookups = [];
    const find = async (id: string): Promise<Company | undefined> => {
      if (id === ACME.id) return ACME;
      return new Promise((resolve) => lookups.push(() => resolve(company(id, `whsec_${id}`))));
    };
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { runtime, webhook, companies: { find } },
      controllers: [OnMethods],
      main,
    });
    app.log.lines.length = 0;
  };
  afterEach(async () => app.app.close());

  it.each(['/webhooks/payments', '/method/of'])(
    'SE-08 no log line is written if a sender at %s closes its connection during the lookup of the company',
    async (path) => {
      await start();
      let closed = 0;
      (app.app.getHttpServer() as Server).on('connection', (socket) => {
        socket.on('close', () => (closed += 1));
      });
      for (const id of ['a', 'b', 'c']) {
        const sender = await RawConnection.open(app.url);
        const known = lookups.length;
        const signed = signedWebhook(company(id, `whsec_${id}`));
        await sender.write(bytesOf({ ...signed, path: `${path}/${id}` }));
        await until(() => lookups.length > known, 'the lookup');
        sender.socket.destroy();
      }
      await until(() => closed === 3, 'the end of the connections');
      await turns(50);
      expect(app.log.lines).toEqual([]);
      for (const endLookup of lookups) endLookup();
      await turns(50);
      expect(app.log.lines).toEqual([]);
    },
  );

  it('SE-03 if the application delays a webhook request after its body has been read, the request is rejected in favour of a newer request', async () => {
    const gate = new Gate();
    let held = false;
    const hold = async (): Promise<void> => {
      if (held) return;
      held = true;
      await gate.pass();
    };
    await start({ maxPending: 1 }, (application) => {
      const instance: unknown = application.getHttpAdapter().getInstance();
      if (adapter === 'fastify') {
        (instance as FastifyInstance).addHook('preValidation', hold);
      } else {
        application.use((_: unknown, __: unknown, next: () => void) => void hold().then(next));
      }
    });
    const first = app.send(signedWebhook(ACME));
    await gate.arrival;
    runtime.advance(100);
    expect(await app.send(signedWebhook(ACME))).toMatchObject({ status: 200 });
    gate.open();
    expect(await first).toMatchObject({ status: 503, body: { code: 'webhook_busy' } });
  });
});

describe('a hook of Fastify that decompresses bodies', () => {
  let app: WebhookApplication;
  beforeEach(async () => {
    const adapter = new FastifyAdapter();
    adapter
      .getInstance<FastifyInstance>()
      .addHook('preParsing', async (_, __, payload) => payload.pipe(createGunzip()));
    app = await WebhookApplication.start({ adapter });
  });
  afterEach(async () => app.app.close());

  it('SE-02 a hook that decompresses bodies does not end the process if its stream fails after the webhook request was rejected', async () => {
    const signed = signedWebhook({ webhookSecret: SECRET });
    const headers = { ...signed.headers, 'Content-Encoding': 'gzip' };
    for (let n = 0; n < 2; n += 1) {
      expect(await app.send({ ...signed, headers })).toMatchObject({ status: 415 });
    }
  });
});
