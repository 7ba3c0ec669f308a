import { describe, expect, it } from '@jest/globals';
import { Injectable, UseFilters, UseInterceptors } from '@nestjs/common';
import type { CallHandler, ExceptionFilter, NestInterceptor } from '@nestjs/common';
import { none, OnPaymentEvent, UnrecoverableError } from 'nestjs-payments';
import type { PaymentsObserver } from 'nestjs-payments';
import { catchError, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { storedDelivery } from '../../support/webhook/handler-application.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';
import {
  ExpectingApplication,
  onMemoryAndSqlite,
} from '../../support/inbox/expecting-application.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import { Observed, observerOf } from '../../support/telemetry/recording-observer.js';
import { eventually } from '../../support/time/waiting.js';

const FAILURES: readonly [string, () => unknown][] = [
  [
    'throws',
    () => {
      throw new Error('the tracker is down');
    },
  ],
  ['rejects', () => Promise.reject(new Error('the tracker is down'))],
  ['never resolves', () => new Promise(() => {})],
  // oxlint-disable-next-line unicorn/no-thenable -- the module calls it
  ['returns an object whose then() throws', () => ({ then: () => FAILURES[0]![1]() })],
];

onMemoryAndSqlite((data) => {
  it.each(FAILURES)(
    'TE-01 an observer that %s in every method changes nothing, and the next observer is called',
    async (what, fail) => {
      const observed = new Observed();
      const observers: PaymentsObserver[] = [observerOf(fail), observed.observer];
      let broken = true;
      const book = () => {
        if (broken) throw new Error('broken');
      };
      const options = { observers, worker: { retry: none } };
      await using app = await startOn(await data(), { book }, options);
      await post(app, 'e-1', {});
      await eventually(async () => expect(await states(app, 'e-1')).toEqual({ book: 'dead 1' }));
      broken = false;
      await inboxOf(app).redrive({ handler: 'book' });
      await eventually(async () => expect(await states(app, 'e-1')).toEqual({ book: 'done 1' }));
      expect(await post(app, 'e-2', {})).toBe(200);
      await eventually(() => expect(observed.of('attemptEnded')).toHaveLength(3));
      const lines = app.log.matching(/An observer failed in attemptEnded\(\)/);
      expect(lines).toHaveLength(what === 'never resolves' ? 0 : 1);
      for (const line of lines) expect(line).toContain('Error: the tracker is down');
    },
  );

  it.each([
    ['a method that throws', observerOf(FAILURES[0]![1])],
    ['a getter that throws', new Proxy<PaymentsObserver>({}, { get: FAILURES[0]![1] })],
  ])('TE-01 an observer with %s changes nothing about expected payments', async (_what, one) => {
    const observers = [one];
    await using app = await ExpectingApplication.start(await data(), { observers });
    app.respond(1, { status: 'complete' });
    await app.expect(1);
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'poll' } });
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
    await app.expect(2);
    expect(await app.webhook('t-2')).toBe(200);
    await eventually(async () => expect(await app.find(2)).toMatchObject({ state: 'fulfilled' }));
  });
});

describe('a filter or an interceptor of a handler that throws', () => {
  class Broken implements ExceptionFilter {
    catch(): never {
      throw new TypeError('the filter is broken');
    }
  }
  class Rethrows implements ExceptionFilter {
    catch(error: unknown): never {
      throw error;
    }
  }
  class Wraps implements NestInterceptor {
    intercept(_context: unknown, next: CallHandler): Observable<unknown> {
      return next
        .handle()
        .pipe(catchError((cause: unknown) => throwError(() => new Error('wrapped', { cause }))));
    }
  }
  class Replaces implements NestInterceptor {
    intercept(_context: unknown, next: CallHandler): Observable<unknown> {
      return next
        .handle()
        .pipe(catchError(() => throwError(() => new TypeError('the interceptor is broken'))));
    }
  }
  const failed = async (decorator: MethodDecorator, error: unknown) => {
    class Books {
      @decorator
      @OnPaymentEvent('*', { name: 'book' })
      async book(): Promise<void> {
        throw error;
      }
    }
    Injectable()(Books);
    await using app = await WebhookApplication.start({ providers: [Books] });
    await post(app, 'e-1');
    const [line] = app.log.matching(/Delivery of event e-1 .* failed/);
    return { ...(await storedDelivery(app, 'e-1')), line: line! };
  };
  const LEDGER = new Error('the ledger is down');

  it.each([
    ['a filter', UseFilters(Broken), 'the filter is broken'],
    ['an interceptor', UseInterceptors(Replaces), 'the interceptor is broken'],
  ])(
    'TE-02 if %s of a handler throws, the attempt and the log have its error and the error of the handler',
    async (_what, decorator, later) => {
      const { lastError, line, state } = await failed(decorator, LEDGER);
      expect(state).toBe('pending');
      expect(lastError).toBe(
        'Error: Error: the ledger is down. A filter or an interceptor of the handler then threw: ' +
          `TypeError: ${later}`,
      );
      expect(line).toContain(lastError!);
      expect(line).toMatch(/\n {4}at .*telemetry\/observers-failing/);
    },
  );

  it.each([
    ['a filter throws the error of the handler', UseFilters(Rethrows), 'Error: the ledger is down'],
    [
      'the error of an interceptor has the error of the handler as its cause',
      UseInterceptors(Wraps),
      'Error: wrapped (cause: Error: the ledger is down)',
    ],
  ])('TE-02 if %s, the attempt has that error alone', async (_what, decorator, error) => {
    expect((await failed(decorator, LEDGER)).lastError).toBe(error);
  });

  it('TE-02 a delivery whose handler threw an UnrecoverableError is dead, also if its filter then throws', async () => {
    const { state, lastError } = await failed(UseFilters(Broken), new UnrecoverableError('no'));
    expect(state).toBe('dead');
    expect(lastError).toContain('UnrecoverableError (unrecoverable): no.');
    expect(lastError).toContain('TypeError: the filter is broken');
  });

  it('TE-02 two errors with long messages are both in the attempt', async () => {
    const { lastError } = await failed(UseFilters(Broken), new Error('x'.repeat(5000)));
    expect(lastError).toContain('Error: xxx');
    expect(lastError).toContain('TypeError: the filter is broken');
  });
});
