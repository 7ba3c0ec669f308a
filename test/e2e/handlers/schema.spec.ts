import { expect, it } from '@jest/globals';
import { type } from 'arktype';
import { none, OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, StandardSchema } from 'nestjs-payments';
import * as v from 'valibot';
import { z } from 'zod';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import {
  onOneAdapter,
  stored,
  storedDelivery,
  webhookRequest,
} from '../../support/webhook/handler-application.js';

interface Paid {
  amount: number;
  items: { name: string }[];
}

/** A schema without a library, which checks asynchronously and converts the amount. */
const byHand: StandardSchema<Paid> = {
  '~standard': {
    version: 1,
    vendor: 'by hand',
    validate: async (data) => {
      const { amount, items } = data as { amount: unknown; items: { name: unknown }[] };
      const message = JSON.stringify(data);
      const issues = [
        ...(typeof amount === 'number' ? [] : [{ message, path: ['amount'] }]),
        ...items.flatMap(({ name }, index) =>
          typeof name === 'string' ? [] : [{ message, path: [{ key: 'items' }, index, 'name'] }],
        ),
      ];
      return issues.length > 0 ? { issues } : { value: data as Paid };
    },
  },
};

const SCHEMAS: Readonly<Record<string, StandardSchema<Paid>>> = {
  zod: z.object({ amount: z.number(), items: z.array(z.object({ name: z.string() })) }),
  valibot: v.object({ amount: v.number(), items: v.array(v.object({ name: v.string() })) }),
  arktype: type({ amount: 'number', items: type({ name: 'string' }).array() }),
  'a schema by hand': byHand,
};

onOneAdapter('schemas of handlers', (start) => {
  it.each(Object.keys(SCHEMAS))(
    'AP-19 a handler with a schema of %s gets valid data; a delivery with invalid data is dead at once, and its error names the paths',
    async (library) => {
      const got: Paid[] = [];
      class Orders {
        @OnPaymentEvent('transaction.completed', { schema: SCHEMAS[library]! })
        book({ data }: PaymentEvent<string, Paid>): void {
          got.push(data);
        }
      }
      await using app = await start({ providers: [Orders] });
      const valid = { amount: 15, items: [{ name: 'Ada' }] };
      expect(await app.send(webhookRequest({ id: 'e-1', data: valid }))).toMatchObject({
        status: 200,
      });
      expect(got).toEqual([valid]);

      const data = { amount: '4242', items: [{ name: 'Ada' }, { name: 4242 }] };
      const sent = webhookRequest({ id: 'e-2', data });
      const response = await app.send(sent);
      expect(response.status).toBe(503);
      const { state, attempts, lastError } = await storedDelivery(app, 'e-2');
      expect({ state, attempts }).toEqual({ state: 'dead', attempts: 1 });
      expect(lastError).toContain('(data_invalid)');
      expect(lastError).toContain('does not satisfy its schema: amount, items[1].name. The inbox');
      expect((await stored(app, 'e-2')).raw?.equals(sent.body)).toBe(true);
      expect(app.log.matching(/e-2.*is dead.*amount, items\[1\]\.name/)).toHaveLength(1);
      expect([lastError, response.text, ...app.log.lines].join('\n')).not.toContain('4242');
      expect(got).toHaveLength(1);
    },
  );

  it('AP-19 a handler gets the output of its schema, not the data of the event', async () => {
    const Trimmed = z.object({ name: z.string().transform((name) => name.trim()) }).strict();
    const got: unknown[] = [];
    class Orders {
      @OnPaymentEvent('transaction.completed', { schema: Trimmed })
      book({ data }: PaymentEvent<string, z.infer<typeof Trimmed>>): void {
        got.push(data);
      }
    }
    await using app = await start({ providers: [Orders] });
    await app.send(webhookRequest({ id: 'e-1', data: { name: ' Ada ' } }));
    expect(got).toEqual([{ name: 'Ada' }]);
    await app.send(webhookRequest({ id: 'e-2', data: { name: 'Ada', other: 1 } }));
    expect((await storedDelivery(app, 'e-2')).lastError).toContain('its schema: data. The inbox');
  });

  it('AP-19 no value is stored or logged if a transformation of the schema throws', async () => {
    const failing = z
      .object({})
      .loose()
      .transform(({ card }): object => {
        throw new Error(`no card ${String(card)}`);
      });
    class Orders {
      @OnPaymentEvent('transaction.completed', { schema: failing })
      book(): void {}
    }
    await using app = await start({ providers: [Orders] });
    await app.send(webhookRequest({ id: 'e-1', data: { card: '4242' } }));
    const { state, lastError } = await storedDelivery(app, 'e-1');
    expect(state).toBe('dead');
    expect(lastError).toContain('its schema: it could not be validated.');
    expect([lastError, ...app.log.lines].join()).not.toContain('4242');
  });

  it('AP-19 if a key in the data is not a field name, the key is neither stored nor logged', async () => {
    class Orders {
      @OnPaymentEvent('transaction.completed', {
        schema: z.object({ limits: z.record(z.string(), z.number()) }),
      })
      book(): void {}
    }
    await using app = await start({ providers: [Orders] });
    const limits = { '254712345678': 'x', 'ada@example.com': 'x', perDay: 'x' };
    await app.send(webhookRequest({ id: 'e-1', data: { limits } }));
    const { lastError } = await storedDelivery(app, 'e-1');
    expect(lastError).toContain('its schema: limits.*, limits.perDay.');
    expect([lastError, ...app.log.lines].join()).not.toMatch(/254712345678|ada@/);
  });

  it.each<[string, unknown, string]>([
    ['no result', undefined, 'it could not be validated'],
    ['no issue', { issues: [] }, 'data'],
    ['a path with null', { issues: [{ message: '4242', path: [null] }] }, 'could not be validated'],
  ])('AP-19 data is invalid at once if the schema returns %s', async (_case, result, failure) => {
    const schema = { '~standard': { version: 1, vendor: 'odd', validate: () => result } };
    class Orders {
      @OnPaymentEvent('transaction.completed', { schema: schema as StandardSchema<object> })
      book(): void {}
    }
    await using app = await start({ providers: [Orders] });
    await app.send(webhookRequest({ id: 'e-1', data: {} }));
    const { state, lastError } = await storedDelivery(app, 'e-1');
    expect(state).toBe('dead');
    expect(lastError).toContain(`${failure}. The inbox keeps the event`);
  });

  it('AP-19 a handler does not start if its time limit passes while the schema validates', async () => {
    const runtime = new FakeRuntime();
    const slow: StandardSchema<object> = {
      '~standard': {
        version: 1,
        vendor: 'slow',
        validate: async (value) => {
          runtime.advance(20);
          return { value: value as object };
        },
      },
    };
    let calls = 0;
    class Orders {
      @OnPaymentEvent('transaction.completed', { schema: slow, timeoutMs: 20, retry: none })
      book(): void {
        calls += 1;
      }
    }
    await using app = await start({ providers: [Orders], payments: { runtime } });
    await app.send(webhookRequest({ id: 'e-1', data: {} }));
    expect((await storedDelivery(app, 'e-1')).lastError).toContain('(handler_timeout)');
    expect(calls).toBe(0);
  });

  it('AP-19 OnPaymentEvent() throws if one decorator of a method has a schema and another decorator has a data class', () => {
    class Data {}
    class Orders {
      book(): void {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'book')!;
    OnPaymentEvent('a', { data: Data })(Orders.prototype, 'book', descriptor);
    expect(() =>
      OnPaymentEvent('b', { schema: z.object({}) })(Orders.prototype, 'book', descriptor),
    ).toThrow('cannot be combined with "@OnPaymentEvent.data"');
  });

  it('AP-19 OnPaymentEvent() throws for a schema that is no Standard Schema, and for a schema with a data class', () => {
    const schema = { parse: () => ({}) } as never;
    expect(() => OnPaymentEvent('*', { schema })).toThrow('must be a schema with Standard Schema');
    class Data {}
    const both = { data: Data, schema: z.object({}) };
    expect(() => OnPaymentEvent('*', both)).toThrow(
      'cannot be combined with "@OnPaymentEvent.data"',
    );
  });
});
