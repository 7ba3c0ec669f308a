import { expect, it } from '@jest/globals';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { Gate } from '../../support/time/gate.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

onEachDurableInbox((durable) => {
  it('the response is sent as soon as the event is stored, before slow handlers end', async () => {
    const data = await durable.data();
    const gate = new Gate();
    await using app = await startOn(data, { book: () => gate.pass() });
    expect(await post(app, 'paid')).toBe(200);
    await gate.arrival;
    expect(await states(app, 'paid')).toEqual({ book: 'running 1' });
    gate.open();
  });

  it('IN-05 an event with a stored id and another body gets the response 200 and is logged, and the first event is kept', async () => {
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

  it('WH-23 a second "transaction.completed" event of a transaction is stored as a repeat and runs no handler', async () => {
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
