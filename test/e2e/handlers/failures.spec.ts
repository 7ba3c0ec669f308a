import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent, UnrecoverableError } from 'nestjs-payments';
import {
  onEachAdapter,
  stored,
  storedDelivery,
  webhookRequest,
} from '../../support/webhook/handler-application.js';
import type { WebhookApplication } from '../../support/webhook/webhook-application.js';

const runs: Record<string, number> = {};
let broken = true;

@Injectable()
class Three {
  @OnPaymentEvent('*')
  first(): void {
    runs['first'] = (runs['first'] ?? 0) + 1;
  }

  @OnPaymentEvent('*')
  async second(): Promise<void> {
    runs['second'] = (runs['second'] ?? 0) + 1;
    if (broken) throw new Error('the second is broken');
  }

  @OnPaymentEvent('*')
  third(): void {
    runs['third'] = (runs['third'] ?? 0) + 1;
  }
}

let thrown: () => unknown;

@Injectable()
class Thrower {
  @OnPaymentEvent('later')
  async later(): Promise<never> {
    await Promise.resolve();
    throw thrown();
  }

  @OnPaymentEvent('at once')
  now(): never {
    throw thrown();
  }
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** Name of a thrown value, its factory, and the text that the inbox stores for it. */
const THROWN: [string, () => unknown, string][] = [
  ['an error', () => new RangeError('too far'), 'RangeError: too far'],
  ['a frozen object', () => Object.freeze({ message: 'cold' }), 'cold'],
  ['undefined', () => undefined, 'undefined was thrown'],
  ['null', () => null, 'null was thrown'],
  ['a string', () => 'just text', 'just text'],
  ['a number', () => 42, '42 was thrown'],
  ['a symbol', () => Symbol('sign'), 'Symbol(sign) was thrown'],
  ['a function', () => () => 'the source of it', 'a function was thrown'],
  ['a revoked proxy', revoked, 'something that cannot be described was thrown'],
  [
    'an object without a prototype',
    () => Object.create(null),
    'an object without a message was thrown',
  ],
  ['a huge message', () => new Error('m'.repeat(5_000_000)), `Error: ${'m'.repeat(992)}…`],
  ['a message of several lines and a NUL', () => new Error('a\nb\r\n\0c\u2028d'), 'Error: a b c d'],
  [
    'an error that is its own cause',
    () => {
      const error = new Error('round');
      return Object.assign(error, { cause: error });
    },
    'Error: round (cause: Error: round (cause: Error: round))',
  ],
];

onEachAdapter((start) => {
  it('WH-20 the application retries only the handler that throws, and runs the other handlers once', async () => {
    Object.assign(runs, { first: 0, second: 0, third: 0 });
    broken = true;
    await using app = await start({ providers: [Three] });
    const sent = webhookRequest({ id: 'e-1' });
    expect(await app.send(sent)).toMatchObject({
      status: 503,
      body: { code: 'handlers_failed', message: expect.stringMatching(/^1 of 3 handlers/) },
    });
    expect(runs).toEqual({ first: 1, second: 1, third: 1 });
    expect(await app.send(sent)).toMatchObject({ status: 503 });
    expect(runs).toEqual({ first: 1, second: 2, third: 1 });
    broken = false;
    expect(await app.send(sent)).toMatchObject({ status: 200 });
    expect(runs).toEqual({ first: 1, second: 3, third: 1 });
    const states = (await stored(app, 'e-1')).deliveries.map(({ state }) => state);
    expect(states).toEqual(['done', 'done', 'done']);
  });

  describe.each(['later', 'at once'])('a handler that throws %s', (eventType) => {
    let app: WebhookApplication;
    beforeAll(async () => {
      app = await start({ providers: [Thrower] });
    });
    afterAll(() => app.app.close());

    it.each(THROWN)(
      'WH-24 the application stores and logs %s that a handler throws, and does not put it into the response',
      async (id, make, expected) => {
        thrown = make;
        const response = await app.send(webhookRequest({ id, eventType }));
        expect(response).toMatchObject({ status: 503, body: { code: 'handlers_failed' } });
        expect(Object.keys(response.body).toSorted()).toEqual(['code', 'message', 'statusCode']);
        expect(response.body['message']).toBe(
          '1 of 1 handlers have not succeeded yet; see the log for the errors. Only these handlers run again ' +
            'when the event is sent again.',
        );
        expect(await storedDelivery(app, id)).toMatchObject({
          state: 'pending',
          attempts: 1,
          lastError: expected,
        });
        const lines = app.log.lines.filter((line) => line.includes(`event ${id} (`));
        expect(lines).toEqual([expect.stringMatching(/^warn .*failed \(attempt 1 of \d+\)/)]);
      },
    );
  });

  it('WH-24 the application logs the stack frames of an error, and its message once, truncated', async () => {
    thrown = () => new Error('m'.repeat(5000));
    await using app = await start({ providers: [Thrower] });
    await app.send(webhookRequest({ eventType: 'at once' }));
    const [line] = app.log.matching(/failed \(attempt/);
    expect(line).toMatch(/\n {4}at .*thrown.*handlers\/failures\.spec/);
    expect(line!.match(/m{100,}/g)).toHaveLength(1);
    expect(line!.length).toBeLessThan(7000);
    expect(app.log.lines.join()).not.toContain('ExceptionsHandler');
  });

  it('WH-24 the application makes a delivery a dead letter at once after an UnrecoverableError, and logs it', async () => {
    thrown = () => new UnrecoverableError('only KES is booked here');
    await using app = await start({ providers: [Thrower] });
    await app.send(webhookRequest({ id: 'e-1', eventType: 'later' }));
    expect(await storedDelivery(app, 'e-1')).toMatchObject({
      state: 'dead',
      attempts: 1,
      lastError: 'UnrecoverableError (unrecoverable): only KES is booked here',
    });
    expect(app.log.matching(/^error .*is dead; it is kept.*only KES/)).toHaveLength(1);
  });
});
