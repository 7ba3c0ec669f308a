import { afterEach, describe, expect, it } from '@jest/globals';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PaymentsError, memoryInbox } from 'nestjs-payments';
import type { Company, InboxDefinition, PaymentsErrorCode } from 'nestjs-payments';
import { express } from '../../support/http/express.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import { FORGED, bytesOf } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { WebhookApplication, company } from '../../support/webhook/webhook-application.js';

const ACME = company('acme', 'whsec_acme');
const COUNT = { express: 10_000, fastify: 1_300 };
const CONNECTIONS = 10;

const forAcme = (payload: Parameters<typeof signedWebhook>[1] = {}) => signedWebhook(ACME, payload);
const signed = forAcme();

/** A request for each rejection that a sender can cause any number of times. */
const REJECTED = {
  signature_missing: [401, bytesOf(signed, { 'X-Webhook-Signature': undefined })],
  signature_malformed: [401, bytesOf(signed, { 'X-Webhook-Signature': 'sha512=no' })],
  signature_mismatch: [401, bytesOf(signed, { 'X-Webhook-Signature': FORGED })],
  company_unknown: [401, bytesOf({ ...signed, path: '/webhooks/payments/nobody' })],
  payload_invalid: [400, bytesOf(forAcme('{"id":1}'))],
  payload_too_large: [413, bytesOf(forAcme({ metadata: { pad: 'x'.repeat(2000) } }))],
  content_type_unsupported: [415, bytesOf(signed, { 'Content-Type': 'text/plain' })],
  content_encoding_unsupported: [415, bytesOf(signed, { 'Content-Encoding': 'gzip' })],
  request_rejected: [403, bytesOf(signed, { 'User-Agent': 'rejected' })],
  directory_unavailable: [503, bytesOf({ ...signed, path: '/webhooks/payments/unavailable' })],
  inbox_unavailable: [503, bytesOf(forAcme({ eventType: 'inbox.down' }))],
  inbox_full: [503, bytesOf(forAcme({ eventType: 'inbox.full' }))],
  raw_body_unavailable: [500, bytesOf(signed, { 'X-Drained': 'yes' })],
} satisfies Partial<Record<PaymentsErrorCode, [status: number, request: Buffer]>>;

/** An inbox that fails for two event types. */
const inbox: InboxDefinition = {
  ...memoryInbox(),
  create: (runtime) => {
    const store = memoryInbox().create(runtime);
    const receive = store.receive.bind(store);
    return Object.assign(store, {
      receive: async (events: Parameters<typeof receive>[0]) => {
        const eventType = events[0]?.eventType;
        if (eventType === 'inbox.full') throw new PaymentsError('inbox_full', 'There is no room.');
        if (eventType === 'inbox.down') throw new Error('the disk is gone');
        return receive(events);
      },
    });
  },
};

async function find(id: string): Promise<Company | undefined> {
  if (id === 'unavailable') throw new Error('the directory is down');
  return id === 'acme' ? ACME : undefined;
}

/** Adapters on which other code reads the body first, if the request has the header `X-Drained`. */
const ADAPTERS = {
  express: () => {
    const server = express();
    server.use((request, _, next) => {
      if (request.headers['x-drained'] === undefined) next();
      else request.resume().once('end', () => next());
    });
    return new ExpressAdapter(server);
  },
  fastify: () => {
    const adapter = new FastifyAdapter();
    const drain = ({ raw }: { raw: NodeJS.ReadableStream }, _: unknown, next: () => void): void => {
      const { headers } = raw as unknown as { headers: Record<string, string | undefined> };
      if (headers['x-drained'] === undefined) next();
      else raw.resume().once('end', () => next());
    };
    adapter.getInstance().addHook('onRequest', drain as never);
    return adapter;
  },
};

describe.each(['express', 'fastify'] as const)('rejected webhook requests on %s', (adapter) => {
  const runtime = new FakeRuntime();
  let app: WebhookApplication;
  const start = async (): Promise<void> => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter](),
      payments: {
        companies: { find },
        baseUrl: 'http://127.0.0.1:9',
        inbox,
        runtime,
        webhook: {
          bodyLimitBytes: 1024,
          before: ({ headers }) => (headers['user-agent'] === 'rejected' ? {} : undefined),
        },
      },
    });
    app.log.lines.length = 0;
  };
  /** Sends a request `times` times over 10 connections, sequentially on each. Returns the different statuses. */
  const send = async (request: Buffer, times: number): Promise<Set<number | undefined>> => {
    const statuses = new Set<number | undefined>();
    const sender = async (): Promise<void> => {
      const connection = await RawConnection.open(app.url);
      for (let left = times / CONNECTIONS; left > 0; left -= 20) {
        const count = Math.min(20, left);
        await connection.write(Buffer.concat(Array<Buffer>(count).fill(request)));
        for (let n = 0; n < count; n += 1) statuses.add(await connection.status());
      }
      connection.socket.destroy();
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, sender));
    return statuses;
  };
  afterEach(async () => app.app.close());

  it(`SE-08 ${COUNT[adapter]} rejected webhook requests of all kinds cause fewer than 20 log lines, one per code`, async () => {
    await start();
    const kinds = Object.entries(REJECTED);
    const each = Math.ceil(COUNT[adapter] / kinds.length / CONNECTIONS) * CONNECTIONS;
    for (const [code, [status, request]] of kinds) {
      expect([code, await send(request, each)]).toEqual([code, new Set([status])]);
    }
    expect(app.log.lines.length).toBeLessThan(20);
    expect(app.log.lines).toHaveLength(kinds.length - 1);
    // Nothing is logged for a full inbox, because the statistics of the inbox show it.
    for (const code of [
      'signature of a webhook request cannot be checked',
      'the directory is down',
      'the disk is gone',
    ]) {
      expect(app.log.matching(new RegExp(code))).toHaveLength(1);
    }
    // The number of the suppressed lines of each code is logged a minute later.
    app.log.lines.length = 0;
    runtime.advance(60_000);
    expect(app.log.matching(new RegExp(`${each - 1} about "signature_missing"`))).toHaveLength(1);
    expect(app.log.lines.length).toBeLessThan(20 - kinds.length);
  });

  it('SE-08 the number of rejected webhook requests is logged after a minute, or when the application closes', async () => {
    await start();
    await send(REJECTED.signature_mismatch[1], 40);
    expect(app.log.matching(/signature_mismatch/)).toHaveLength(1);
    runtime.advance(60_000);
    expect(app.log.lines.slice(1)).toEqual([
      expect.stringMatching(/^warn .*\(signature_mismatch\).* \(38 more since the previous line\)/),
    ]);
    await send(REJECTED.signature_mismatch[1], 10);
    expect(app.log.lines).toHaveLength(2);
    await app.app.close();
    expect(app.log.lines[2]).toMatch(/\(signature_mismatch\).* \(9 more since the previous line\)/);
    runtime.advance(120_000);
    expect(app.log.lines).toHaveLength(3);
  });
});
