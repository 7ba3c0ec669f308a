import { expect, it } from '@jest/globals';
import { none } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { Gate } from '../../support/time/gate.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';
import { company, SECRET } from '../../support/webhook/webhook-application.js';

onEachDurableInbox((durable) => {
  it('IN-01 the raw bytes are stored as they were signed and passed to the handler', async () => {
    const data = await durable.data();
    const seen: Buffer[] = [];
    await using app = await startOn(data, { book: (_event, { raw }) => void seen.push(raw) });
    const body = `{ "eventType":"t",\t"id" : "odd" ,"timestamp":"${new Date().toISOString()}", "data":{"é":"\\u00e9 💶 "}}`;
    const sent = signedWebhook({ webhookSecret: SECRET }, body);
    expect((await app.send(sent)).status).toBe(200);
    await eventually(() => expect(seen).toHaveLength(1));
    expect(seen[0]!.equals(Buffer.from(body))).toBe(true);
    expect((await inboxOf(app).get('odd'))!.raw!.equals(Buffer.from(body))).toBe(true);
  });

  it('the response is sent as soon as the event is stored, before slow handlers end', async () => {
    const data = await durable.data();
    const gate = new Gate();
    await using app = await startOn(data, { book: () => gate.pass() });
    expect(await post(app, 'paid')).toBe(200);
    await gate.arrival;
    expect(await states(app, 'paid')).toEqual({ book: 'running 1' });
    gate.open();
  });

  it('IN-02 50 copies that arrive at two applications at once are stored and run once', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }) => void ran.push(id);
    await using a = await startOn(data, { book: handle });
    await using b = await startOn(data, { book: handle });
    const sent = webhookRequest({ id: 'paid' });
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => (index % 2 ? a : b).send(sent)),
    );
    // The body of any other response has the code of the failure.
    expect(responses.filter(({ status }) => status !== 200)).toEqual([]);
    expect(responses).toHaveLength(50);
    await eventually(async () => expect(await states(a, 'paid')).toEqual({ book: 'done 1' }));
    expect(ran).toEqual(['paid']);
    expect((await inboxOf(a).list()).events).toHaveLength(1);
  });

  it('IN-04 the same id of two companies is two events', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const secrets = { acme: 'whsec_of_acme_123456', umbrella: 'whsec_of_umbrella_1' };
    const companies = Object.entries(secrets).map(([id, secret]) => company(id, secret));
    const handle: Handle = (_event, context) => void ran.push(context.company);
    await using app = await startOn(data, { book: handle }, { companies });
    for (const [id, webhookSecret] of Object.entries(secrets)) {
      const sent = signedWebhook({ id, webhookSecret }, { id: 'same' });
      expect((await app.send(sent)).status).toBe(200);
    }
    await eventually(() => expect(ran.toSorted()).toEqual(['acme', 'umbrella']));
    expect((await inboxOf(app).list()).events).toHaveLength(2);
  });

  it('IN-05 the same id with another body gets 200, is logged as a conflict, and the first event is kept', async () => {
    const data = await durable.data();
    const amounts: unknown[] = [];
    const handle: Handle = (event) => void amounts.push(event.data['amount']);
    await using app = await startOn(data, { book: handle });
    expect(await post(app, 'paid', { amount: 1500 })).toBe(200);
    await eventually(async () => expect(await states(app, 'paid')).toEqual({ book: 'done 1' }));
    expect(await post(app, 'paid', { amount: 9999 })).toBe(200);
    expect(
      app.log.matching(/^error .*Event paid .* was received again with another body/),
    ).toHaveLength(1);
    expect(JSON.parse(String((await inboxOf(app).get('paid'))!.raw))).toMatchObject({
      data: { amount: 1500 },
    });
    expect(amounts).toEqual([1500]);
  });

  it('IN-06 a copy of an event that is running, done or dead adds no delivery', async () => {
    const data = await durable.data();
    const gate = new Gate();
    const ran: string[] = [];
    const handlers: Record<string, Handle> = {
      slow: async () => {
        ran.push('slow');
        await gate.pass();
      },
      dead: () => {
        ran.push('dead');
        throw new Error('no');
      },
    };
    await using app = await startOn(data, handlers, { worker: { retry: none } });
    const sent = webhookRequest({ id: 'paid' });
    const copy = async () => (await app.send(sent)).status;
    expect(await copy()).toBe(200);
    await eventually(async () =>
      expect(await states(app, 'paid')).toEqual({ dead: 'dead 1', slow: 'running 1' }),
    );
    expect(await copy()).toBe(200);
    gate.open();
    const done = { dead: 'dead 1', slow: 'done 1' };
    await eventually(async () => expect(await states(app, 'paid')).toEqual(done));
    expect(await copy()).toBe(200);
    await post(app, 'next');
    await eventually(async () => expect(await states(app, 'next')).toEqual(done));
    expect(await states(app, 'paid')).toEqual(done);
    expect(ran.toSorted()).toEqual(['dead', 'dead', 'slow', 'slow']);
  });

  it('WH-23 a second completed event of a transaction is stored as a repeat of the first and does not run', async () => {
    const data = await durable.data();
    const ran: string[] = [];
    const handle: Handle = ({ id }) => void ran.push(id);
    await using a = await startOn(data, { book: handle });
    await using b = await startOn(data, { book: handle });
    const send = (app: typeof a, id: string, eventType = 'transaction.completed') =>
      app.send(webhookRequest({ id, eventType, data: { transactionId: 'T', amount: id } }));
    expect((await send(a, 'first')).body).toMatchObject({ status: 'stored', id: 'first' });
    for (const id of ['second', 'third', 'second']) {
      const { status, body } = await send(b, id);
      expect([status, body]).toEqual([200, { received: true, status: 'duplicate', id: 'first' }]);
    }
    for (const id of ['u1', 'u2', 'u3']) await send(a, id, 'transaction.updated');
    await eventually(() => expect(ran.toSorted()).toEqual(['first', 'u1', 'u2', 'u3']));
    const first = (await inboxOf(a).get('first'))!;
    expect(first.repeats.map(({ id }) => id)).toEqual(['second', 'third']);
    expect(await inboxOf(a).get('second')).toBeUndefined();
    // At most one line per minute is logged. The other lines are only counted.
    expect(b.log.matching(/^warn .*Event second .*event first, .*was not handled/)).toHaveLength(1);
    expect(b.log.matching(/has the transaction of event/)).toHaveLength(1);
    expect(a.log.matching(/has the transaction of event/)).toEqual([]);
  });
});
