import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { memoryInbox, PaymentInbox, PaymentsError, verifySignature } from 'nestjs-payments';
import type {
  EngineMessage,
  EngineStatus,
  EventRelay,
  PaymentsModuleOptions,
} from 'nestjs-payments';
import { PaymentsModule } from 'nestjs-payments';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';
import { AT_ONCE, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { ListEngine } from '../../support/engines/list-engine.js';
import type { ListSource } from '../../support/engines/list-engine.js';
import { bootFailure } from '../../support/webhook/boot-failure.js';
import { company, OPTIONS, SECRET } from '../../support/webhook/webhook-application.js';
import type { WebhookApplication } from '../../support/webhook/webhook-application.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { eventually } from '../../support/time/waiting.js';
import { healthOf, startWithHealth } from '../../support/telemetry/health-application.js';
import { Metrics, Traces, useContext } from '../../support/telemetry/otel-sdk.js';

const DATA = { transactionId: 't-1', status: 'complete', amount: 5 };

describe('a gateway and its worker services', () => {
  const durable = durableSqlite();
  let engine: ListEngine;
  let ending: AsyncDisposableStack;

  beforeEach(() => {
    engine = new ListEngine();
    ending = new AsyncDisposableStack();
  });
  afterEach(() => ending.disposeAsync());

  async function startGateway(
    options: Partial<PaymentsModuleOptions> = {},
    handlers: Readonly<Record<string, Handle>> = {},
  ): Promise<WebhookApplication> {
    const data = await durable.data();
    const gateway = startOn(data, handlers, { relay: engine.relay, ...options });
    return ending.use(await gateway);
  }

  async function startService(
    source: ListSource,
    handle: Handle,
    options: Partial<PaymentsModuleOptions> = {},
  ): Promise<WebhookApplication> {
    const data = await durable.data();
    return ending.use(await startOn(data, { book: handle }, { source, ...options }));
  }

  it('EN-01 the gateway hands over each event as a delivery to the handler "relay"', async () => {
    const gateway = await startGateway({}, { audit: () => {} });
    expect(await post(gateway, 'e1')).toBe(200);
    await eventually(async () =>
      expect(await states(gateway, 'e1')).toEqual({ audit: 'done 1', relay: 'done 1' }),
    );
    expect(engine.messages.map(({ id }) => id)).toEqual(['default/e1']);
  });

  it('EN-01 a handover that fails is retried, and does not affect other handlers', async () => {
    const runtime = new FakeRuntime();
    engine.failure = new Error('the engine is away');
    const gateway = await startGateway({ runtime }, { audit: () => {} });
    await post(gateway, 'e1');
    await eventually(async () =>
      expect(await states(gateway, 'e1')).toEqual({ audit: 'done 1', relay: 'pending 1' }),
    );
    engine.failure = null;
    // The longest first wait, after jitter.
    await eventually(async () => {
      runtime.advance(2000);
      expect(await states(gateway, 'e1')).toMatchObject({ relay: 'done 2' });
    });
    expect(engine.messages).toHaveLength(1);
  });

  it('EN-01 if the answer of the engine is lost, a copy is published, and each service handles the event once', async () => {
    const handled: string[] = [];
    const source = engine.source();
    const service = await startService(source, ({ id }) => void handled.push(id));
    engine.losesAnswers = true;
    engine.failure = new Error('the answer was lost');
    const gateway = await startGateway();
    await post(gateway, 'e1');
    await eventually(async () =>
      expect(await states(gateway, 'e1')).toEqual({ relay: 'pending 1' }),
    );
    engine.failure = null;
    await gateway.app.get(PaymentInbox).redrive({ ids: ['e1'] });
    await eventually(() => expect(engine.messages).toHaveLength(2));
    await eventually(() => expect(source.outcomes).toHaveLength(2));
    await eventually(async () => expect(await states(service, 'e1')).toEqual({ book: 'done 1' }));
    expect(handled).toEqual(['e1']);
    // A known event is acknowledged, because the engine would deliver an event that is not acknowledged again and
    // again.
    expect(source.outcomes.map(({ outcome }) => outcome.action)).toEqual([
      'acknowledge',
      'acknowledge',
    ]);
  });

  it('EN-02 a message has the signed bytes, and a receiver without this module can verify them', async () => {
    const gateway = await startGateway();
    await post(gateway, 'e1', DATA);
    await eventually(() => expect(engine.messages).toHaveLength(1));
    const { id, key, attributes, body } = engine.messages[0]!;
    expect({ id, key }).toEqual({ id: 'default/e1', key: 'default/t-1' });
    expect(attributes).toEqual({
      specversion: '1.0',
      id: 'e1',
      source: '/payments/default',
      type: 'transaction.updated',
      time: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/),
      datacontenttype: 'application/json',
      company: 'default',
      signature: expect.stringMatching(/^sha512=[0-9a-f]{128}$/),
      origin: 'webhook',
      partitionkey: 'default/t-1',
      subject: 't-1',
    });
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ id: 'e1', data: DATA });
    verifySignature(body, attributes.signature, [SECRET]);
  });

  it('EN-06 events of one transaction have one key, and an event without a transaction has a key of its own', async () => {
    const gateway = await startGateway();
    for (const id of ['e1', 'e2']) await post(gateway, id, DATA);
    await post(gateway, 'e3', {});
    await eventually(() => expect(engine.messages).toHaveLength(3));
    const keys = engine.messages.map(({ key }) => key).toSorted();
    expect(keys).toEqual(['default/e3', 'default/t-1', 'default/t-1']);
    expect(engine.messages.find(({ key }) => key === 'default/e3')!.attributes).not.toHaveProperty(
      'subject',
    );
  });

  it('EN-04 two services each handle every event, exactly once, with the fields of the webhook request', async () => {
    const seen = new Map<string, unknown>();
    const ran: string[] = [];
    const sources = [engine.source(), engine.source()];
    const names = ['ledger', 'mail'];
    for (const [index, source] of sources.entries()) {
      await startService(source, ({ id, eventType, data }, { company: of, raw }) => {
        ran.push(names[index]!);
        seen.set(names[index]!, [id, eventType, data, of, JSON.parse(raw.toString()).id]);
      });
    }
    const gateway = await startGateway();
    await post(gateway, 'e1', DATA);
    await post(gateway, 'e1', DATA);
    const fields = ['e1', 'transaction.updated', DATA, 'default', 'e1'];
    await eventually(() =>
      expect(Object.fromEntries(seen)).toEqual({ ledger: fields, mail: fields }),
    );
    expect(ran).toHaveLength(2);
  });

  describe('a message that a service takes', () => {
    let message: EngineMessage;
    let source: ListSource;
    let handled: string[];
    const handle: Handle = ({ id }) => void handled.push(id);

    beforeEach(async () => {
      handled = [];
      const gateway = await startGateway();
      await post(gateway, 'e1', DATA);
      await eventually(() => expect(engine.messages).toHaveLength(1));
      message = engine.messages[0]!;
      source = engine.source();
    });

    async function outcomes(count: number): Promise<unknown[]> {
      return eventually(() => {
        expect(source.outcomes.length).toBeGreaterThanOrEqual(count);
        return source.outcomes.map(({ outcome }) =>
          outcome.action === 'reject' ? outcome.code : outcome.action,
        );
      });
    }

    const changed = (body: Uint8Array): Buffer => Buffer.concat([body, Buffer.from(' ')]);
    const withAttributes = (attributes: Record<string, string | undefined>): EngineMessage =>
      ({ ...message, attributes: { ...message.attributes, ...attributes } }) as EngineMessage;

    it('EN-05 a message is rejected if its bytes do not match the signature, and blocks no other message', async () => {
      const service = await startService(source, handle);
      engine.add({ ...message, body: changed(message.body) });
      engine.add(withAttributes({ signature: undefined }));
      engine.add(withAttributes({ signature: 'sha512=1' }));
      engine.add(withAttributes({ company: 'other' }));
      engine.add(withAttributes({ company: undefined }));
      engine.add(message);
      expect(await outcomes(6)).toEqual([
        'signature_mismatch',
        'signature_missing',
        'signature_malformed',
        'company_unknown',
        'company_unknown',
        'acknowledge',
      ]);
      await eventually(() => expect(handled).toEqual(['e1']));
      const lines = service.log.lines.filter((line) => line.includes('was rejected'));
      expect(lines.length).toBeGreaterThanOrEqual(3);
      for (const hidden of [message.attributes.signature, 't-1', SECRET])
        expect(service.log.lines.join('\n')).not.toContain(hidden);
    });

    it('EN-05 a message is rejected if its signed bytes are not an event', async () => {
      await startService(engine.source(), handle);
      await startService(source, handle);
      const { signBody } = await import('nestjs-payments');
      const body = Buffer.from('[]');
      engine.add({ ...withAttributes({ signature: signBody(body, SECRET) }), body });
      expect(await outcomes(1)).toEqual(['payload_invalid']);
    });

    it('EN-03 with "verify: false", the signature of a message is not verified', async () => {
      source = engine.source({ verify: false });
      await startService(source, handle);
      engine.add(withAttributes({ signature: undefined }));
      expect(await outcomes(1)).toEqual(['acknowledge']);
      await eventually(() => expect(handled).toEqual(['e1']));
    });

    it('EN-03 a message is verified with each accepted secret of its company', async () => {
      const companies = [company('default', ['next', SECRET]), company('other', 'o')];
      const { clientId: _, clientSecret: __, webhookSecret: ___, baseUrl } = OPTIONS;
      await startService(source, handle, { companies, baseUrl });
      engine.add(message);
      expect(await outcomes(1)).toEqual(['acknowledge']);
    });

    it('EN-03 a message returns to the engine with a growing delay while the inbox of the service is not reachable', async () => {
      const inbox = (await durable.data()).inbox();
      let broken = true;
      const service = await startService(source, handle, {
        inbox: {
          ...inbox,
          create: (runtime) => {
            const store = inbox.create(runtime);
            return new Proxy(store, {
              get: (target, name) => {
                if (name === 'receive' && broken)
                  return () => Promise.reject(new Error('the disk is full'));
                const value: unknown = Reflect.get(target, name, target);
                return typeof value === 'function' ? value.bind(target) : value;
              },
            });
          },
        },
      });
      engine.add(message);
      await outcomes(5);
      broken = false;
      await eventually(() => expect(handled).toEqual(['e1']));
      const actions = await outcomes(6);
      expect(actions.slice(0, 5)).toEqual(Array(5).fill('retry'));
      expect(actions.at(-1)).toBe('acknowledge');
      const waits = source.outcomes.flatMap(({ outcome }) =>
        outcome.action === 'retry' ? [outcome.afterMs] : [],
      );
      expect(waits[0]).toBeLessThanOrEqual(1000);
      expect(waits[4]).toBeGreaterThanOrEqual(8000);
      expect(
        service.log.lines.filter((line) => line.includes('returns to the engine')),
      ).toHaveLength(1);
    });

    it('EN-07 a service takes messages again after its connection to the engine has failed', async () => {
      source.failure = new Error('connection refused');
      const service = await startService(source, handle);
      engine.add(message);
      await eventually(() => expect(handled).toEqual(['e1']));
      expect(source.calls).toBe(2);
      expect(service.log.lines.join('\n')).toContain('connection refused');
    });
  });

  it('EN-08 a gateway with the memory inbox responds with 200 only after the engine has accepted the event', async () => {
    const gateway = await startGateway({ inbox: memoryInbox() });
    engine.failure = new Error('the engine is away');
    expect(await post(gateway, 'e1')).toBe(503);
    expect(engine.messages).toEqual([]);
    engine.failure = null;
    expect(await post(gateway, 'e1')).toBe(200);
    expect(engine.messages).toHaveLength(1);
  });

  it('EN-09 the application does not start if a setting of the engine loses events', async () => {
    const relay: EventRelay = {
      ...engine.relay,
      open: () => Promise.reject(new PaymentsError('engine_unsafe', 'memory storage')),
    };
    const { error } = await bootFailure(PaymentsModule.forRoot({ ...OPTIONS, relay }));
    expect(error).toMatchObject({ code: 'engine_unsafe', message: 'memory storage' });
  });

  it('EN-01 the log lists the handler "relay", and no warning about missing handlers', async () => {
    const { log } = await startGateway();
    expect(log.matching(/^log .*Payment handler relay: \*/)).toHaveLength(1);
    expect(log.matching(/no payment handler/)).toEqual([]);
  });

  it('EN-07 the application starts although the engine is not reachable, logs a warning, and receives events', async () => {
    const relay: EventRelay = {
      ...engine.relay,
      open: () => Promise.reject(new Error('connection refused')),
    };
    const gateway = await startGateway({ relay });
    expect(gateway.log.lines.join('\n')).toContain('could not be reached at the start');
    expect(await post(gateway, 'e1')).toBe(200);
  });

  it('EN-10 an application that closes takes no further message, stores the messages in progress, and closes the connection', async () => {
    const closed: string[] = [];
    const source = Object.assign(engine.source(), {
      close: async () => void closed.push('source'),
    });
    const service = await startService(source, () => {});
    await service.app.close();
    expect(closed).toEqual(['source']);
    const relay = { ...engine.relay, close: async () => void closed.push('relay') };
    const gateway = await startGateway({ relay });
    await gateway.app.close();
    expect(closed).toEqual(['source', 'relay']);
  });

  it('EN-11 the trace of the handover continues in the service', async () => {
    ending.defer(useContext());
    const [traces, others] = [new Traces(), new Traces()];
    await startService(engine.source(), () => {}, { observers: others.observers });
    const gateway = await startGateway({ observers: traces.observers });
    await post(gateway, 'e1', DATA);
    const [attempt] = await traces.ended('process');
    const [receive] = await others.ended('receive');
    expect(receive!.spanContext().traceId).toBe(attempt!.spanContext().traceId);
    expect(receive!.parentSpanContext!.spanId).toBe(attempt!.spanContext().spanId);
  });

  it('EN-11 metrics count taken messages and redeliveries, and show the connection, the lag and the dead letters', async () => {
    const metrics = new Metrics();
    const status = async () => ({ lag: 3, deadLetters: 1 });
    const source = Object.assign(engine.source(), { status });
    await startService(source, () => {}, { observers: [metrics.observer] });
    const gateway = await startGateway();
    await post(gateway, 'e1', DATA);
    source.deliver({ attributes: {}, body: Buffer.from('x'), deliveries: 2 });
    await eventually(() => expect(source.outcomes).toHaveLength(2));
    expect(await metrics.values('payments.engine.messages')).toEqual({
      'outcome=acknowledged': 1,
      'error.type=company_unknown outcome=rejected': 1,
    });
    expect(await metrics.values('payments.engine.redeliveries')).toEqual({ '': 1 });
    expect(await metrics.values('payments.engine.up')).toEqual({ '': 1 });
    expect(await metrics.values('payments.engine.lag')).toEqual({ '': 3 });
    expect(await metrics.values('payments.engine.dead_letters')).toEqual({ '': 1 });
  });

  it('EN-11 if the engine does not answer, readiness stays up and shows the engine as not connected', async () => {
    let status: () => Promise<EngineStatus> = async () => ({ lag: 3, deadLetters: 1 });
    const source = Object.assign(engine.source(), { status: () => status() });
    const service = ending.use(await startWithHealth(memoryInbox(), {}, { source }));
    const engineIn = async () => {
      const { status: code, payments } = await healthOf(service, 'ready');
      return [code, payments['engine']];
    };
    expect(await engineIn()).toEqual([200, { connected: true, lag: 3, deadLetters: 1 }]);
    status = () => Promise.reject(new Error('amqp://user:password@host refused'));
    expect(await engineIn()).toEqual([200, { connected: false }]);
    status = () => new Promise(() => {});
    expect(await engineIn()).toEqual([200, { connected: false }]);
  });

  it.each([
    ['relay', {}, /"relay" must be an object with the function publish/],
    ['source', { consume: 1 }, /"source" must be an object with the function consume/],
  ])(
    'the application does not start if the option "%s" lacks its function',
    async (name, value, message) => {
      const { error } = await bootFailure(PaymentsModule.forRoot({ ...OPTIONS, [name]: value }));
      expect(error.code).toBe('options_invalid');
      expect(error.message).toMatch(message);
    },
  );

  it('"relay" and "source" in one application are rejected at the start', async () => {
    const both = { relay: engine.relay, source: engine.source() };
    const { error } = await bootFailure(PaymentsModule.forRoot({ ...OPTIONS, ...both }));
    expect(error.code).toBe('options_invalid');
    expect(error.message).toContain('not both');
  });

  it('a handler of the application that is named "relay" is rejected if the option "relay" is set', async () => {
    const start = startGateway({ worker: AT_ONCE }, { relay: () => {} });
    await expect(start).rejects.toMatchObject({ code: 'handlers_invalid' });
    expect(inspect(await start.catch((error: unknown) => error))).toContain('the option "relay"');
  });
});
