import { expect, it } from '@jest/globals';
import { Catch, Injectable, UseFilters, UseGuards } from '@nestjs/common';
import type { ArgumentsHost, CanActivate, ExceptionFilter } from '@nestjs/common';
import { OnPaymentEvent, UnrecoverableError } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import {
  HOSTS,
  webhookRequest,
  onOneAdapter,
  storedDelivery,
} from '../../support/webhook/handler-application.js';
import type { WebhookApplication } from '../../support/webhook/webhook-application.js';

class Declined extends Error {}
const caught: unknown[] = [];

@Injectable()
class Alarms {
  readonly rung: unknown[] = caught;
}

/** The event's type selects what the filter returns or throws. */
@Catch(Declined)
class Filter implements ExceptionFilter {
  constructor(private readonly alarms: Alarms) {}

  catch(error: Declined, host: ArgumentsHost): unknown {
    const event = host.getArgByIndex<PaymentEvent>(0);
    this.alarms.rung.push([error.message, host.getType(), host.getArgs().length]);
    return {
      handles: () => ({ handled: true }),
      'handles later': async () => true,
      'returns undefined': () => undefined,
      'returns null': () => null,
      'resolves with undefined': async () => {},
      throws: () => {
        throw new UnrecoverableError('declined for good');
      },
      'throws later': async () => {
        throw new UnrecoverableError('declined for good');
      },
    }[event.eventType]!();
  }
}

class Deny implements CanActivate {
  canActivate(): never {
    throw new Declined('by the guard');
  }
}

class OnMethod {
  @UseFilters(Filter)
  @OnPaymentEvent('*')
  handle(): never {
    throw new Declined('no');
  }
}

@UseFilters(Filter)
class OnClass {
  @OnPaymentEvent('*')
  handle(): never {
    throw new Declined('no');
  }
}

class OnGuard {
  @UseFilters(Filter)
  @UseGuards(Deny)
  @OnPaymentEvent('*')
  handle(): void {}
}

class Quiet {
  @UseFilters(Filter)
  @OnPaymentEvent('*')
  handle(): void {}
}

class Other {
  @UseFilters(Filter)
  @OnPaymentEvent('*')
  handle(): never {
    throw new Error('not a Declined');
  }
}

const FILTERED = [
  ['a method', OnMethod],
  ['a class', OnClass],
  ['a method whose guard throws', OnGuard],
] as const;

onOneAdapter('exception filters of handlers', (start) => {
  const run = async (app: WebhookApplication, eventType: string) => {
    caught.length = 0;
    const { status } = await app.send(webhookRequest({ id: eventType, eventType }));
    const { state, lastError } = await storedDelivery(app, eventType);
    return { eventType, status, state, lastError };
  };
  it.each(
    FILTERED.flatMap(([where, base]) =>
      HOSTS.map(([kind, declare]) => [where, kind, declare(base)] as const),
    ),
  )(
    'WH-19 the application runs the filter of %s of %s, and the value that the filter returns decides whether the error is handled',
    async (_where, _kind, host) => {
      await using app = await start({ ...host, providers: [Alarms, ...(host.providers ?? [])] });
      for (const eventType of ['handles', 'handles later']) {
        expect(await run(app, eventType)).toMatchObject({ eventType, status: 200, state: 'done' });
        expect(caught).toEqual([[expect.any(String), 'payments', 2]]);
      }
      for (const eventType of ['returns undefined', 'returns null', 'resolves with undefined']) {
        expect(await run(app, eventType)).toEqual({
          eventType,
          status: 503,
          state: 'pending',
          lastError: expect.stringMatching(/^Error: (no|by the guard)$/),
        });
        expect(caught).toHaveLength(1);
      }
      for (const eventType of ['throws', 'throws later']) {
        expect(await run(app, eventType)).toEqual({
          eventType,
          status: 503,
          state: 'dead',
          lastError: expect.stringMatching(
            /^UnrecoverableError \(unrecoverable\): Error: (no|by the guard)\. A filter or an interceptor .* threw: UnrecoverableError \(unrecoverable\): declined for good$/,
          ),
        });
      }
    },
  );

  it('WH-19 a filter does not run if it does not catch the type of the error, or if the handler succeeds', async () => {
    await using other = await start({ providers: [Alarms, Other] });
    expect(await run(other, 'handles')).toMatchObject({
      status: 503,
      lastError: 'Error: not a Declined',
    });
    expect(caught).toEqual([]);
    await using quiet = await start({ providers: [Alarms, Quiet] });
    expect(await run(quiet, 'handles')).toMatchObject({ status: 200, state: 'done' });
    expect(caught).toEqual([]);
  });
});
