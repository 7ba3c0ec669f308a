import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { until } from '../../support/time/waiting.js';
import { Gate } from '../../support/time/gate.js';
import {
  webhookRequest,
  onOneAdapter,
  storedDelivery,
} from '../../support/webhook/handler-application.js';

let gate: Gate;
let ran: string[] = [];
let broken = false;

@Injectable()
class Orders {
  @OnPaymentEvent('*')
  async gated(event: PaymentEvent): Promise<void> {
    ran.push(`gated ${event.id}`);
    await gate.pass();
    if (broken) throw new Error('broken');
  }

  @OnPaymentEvent('*')
  quick(event: PaymentEvent): void {
    ran.push(`quick ${event.id}`);
  }
}

function reset(): void {
  gate = new Gate();
  ran = [];
  broken = false;
}

onOneAdapter('copies of an event', (start) => {
  it('WH-21 the application runs each handler once for 50 simultaneous copies of an event, and responds 200 to all', async () => {
    reset();
    await using app = await start({ providers: [Orders] });
    const sent = webhookRequest({ id: 'e-1' });
    let responded = 0;
    const responses = Array.from({ length: 50 }, async () => {
      const response = await app.send(sent);
      responded += 1;
      return response;
    });
    await gate.arrival;
    expect(responded).toBe(0);
    gate.open();
    const bodies = (await Promise.all(responses)).map(({ status, body }) => [
      status,
      body['status'],
    ]);
    expect(bodies.filter(([status]) => status === 200)).toHaveLength(50);
    expect(bodies.filter(([, status]) => status === 'handled')).toHaveLength(1);
    expect(bodies.filter(([, status]) => status === 'duplicate')).toHaveLength(49);
    expect(ran.toSorted()).toEqual(['gated e-1', 'quick e-1']);
    expect(gate.entered).toBe(1);
  });

  it('WH-21 if a handler fails, the application responds 503 to waiting copies of the event, and the next copy runs the handler again', async () => {
    reset();
    broken = true;
    await using app = await start({ providers: [Orders] });
    const sent = webhookRequest({ id: 'e-1' });
    const responses = Array.from({ length: 10 }, () => app.send(sent));
    // The second handler has completed; the responses wait only for the first.
    await until(() => ran.length === 2 && gate.entered === 1);
    gate.open();
    for (const response of await Promise.all(responses)) expect(response.status).toBe(503);
    broken = false;
    expect(await app.send(sent)).toMatchObject({ status: 200 });
    expect(ran.filter((name) => name === 'quick e-1')).toHaveLength(1);
    expect(await storedDelivery(app, 'e-1', '*#gated')).toMatchObject({ state: 'done' });
  });

  it('WH-22 the application responds 200 to a copy of a handled event and runs no handler', async () => {
    reset();
    gate.open();
    await using app = await start({ providers: [Orders] });
    const sent = webhookRequest({ id: 'e-1' });
    expect(await app.send(sent)).toMatchObject({ status: 200, body: { status: 'handled' } });
    for (let copy = 0; copy < 3; copy += 1) {
      expect(await app.send(sent)).toMatchObject({
        status: 200,
        body: { status: 'duplicate', id: 'e-1' },
      });
    }
    expect(ran).toHaveLength(2);
    expect((await storedDelivery(app, 'e-1', '*#gated')).attempts).toBe(1);
  });

  it.each([
    [undefined, ['e-1'], 'duplicate'],
    [['other.type'], ['e-1', 'e-2'], 'handled'],
    [[], ['e-1', 'e-2'], 'handled'],
  ] as const)(
    'WH-23 with oncePerTransaction %j, the application handles the events %j of one transaction, and the status of the last event is %s',
    async (oncePerTransaction, ids, status) => {
      reset();
      gate.open();
      const payments = oncePerTransaction && { oncePerTransaction };
      await using app = await start({ providers: [Orders], ...(payments && { payments }) });
      const data = { transactionId: 't-1' };
      expect(await app.send(webhookRequest({ id: 'e-1', data }))).toMatchObject({ status: 200 });
      const copy = await app.send(webhookRequest({ id: 'e-2', data: { ...data, later: true } }));
      expect(copy).toMatchObject({ status: 200, body: { status, id: ids.at(-1) } });
      expect(ran.filter((name) => name.startsWith('gated'))).toEqual(
        ids.map((id) => `gated ${id}`),
      );
      expect(app.log.matching(/another body/)).toEqual([]);
      expect(app.log.matching(/^warn .*Event e-2 .*event e-1, .*was not handled/)).toHaveLength(
        status === 'duplicate' ? 1 : 0,
      );
    },
  );
});
