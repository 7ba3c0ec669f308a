import { describe, expect, it } from '@jest/globals';
import type {
  PaymentsInstrumentation,
  PaymentsSpan,
  TracedOperation,
} from '../../../libs/payments/src/telemetry/observers.js';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { MEMORY, onMemoryAndSqlite } from '../../support/inbox/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';

/** An instrumentation that records its spans. */
class Spans implements PaymentsInstrumentation {
  readonly started: TracedOperation[] = [];

  startSpan(operation: TracedOperation): PaymentsSpan {
    this.started.push(operation);
    return {
      traceparent: traceparentOf(this.started.length),
      run: (work) => work(),
      end: () => {},
    };
  }

  of(kind: string): TracedOperation[] {
    return this.started.filter((operation) => operation.kind === kind);
  }
}

const traceparentOf = (n: number): string => `00-${`${n}`.padStart(32, 'a')}-${'b'.repeat(16)}-01`;

describe('an instrumentation that fails', () => {
  const fail = (_done?: unknown): never => {
    throw new Error('the exporter is broken');
  };
  const reject = (): never => Promise.reject(new Error('the exporter is broken')) as never;
  const span = (changes: Partial<PaymentsSpan>): PaymentsInstrumentation => ({
    startSpan: () => ({ traceparent: null, run: (work) => work(), end: () => {}, ...changes }),
  });
  const FAILING: readonly [string, PaymentsInstrumentation][] = [
    ['throws in startSpan()', { startSpan: fail }],
    ['returns nothing', { startSpan: () => undefined }],
    ['throws in run() before it calls work()', span({ run: fail })],
    ['never calls work()', span({ run: () => {} })],
    [
      'calls work() twice',
      span({
        run: (work) => {
          work();
          work();
        },
      }),
    ],
    ['throws in end()', span({ end: fail })],
    ['rejects in run() after it called work()', span({ run: (work) => (work(), reject()) })],
    ['rejects in end()', span({ end: reject })],
    ['rejects in attach()', { attach: reject }],
    ['returns an invalid trace context', span({ traceparent: 'x\u0000'.repeat(200) })],
  ];

  it.each(FAILING)('TE-01 an instrumentation that %s changes no attempt', async (what, one) => {
    let ran = 0;
    const book = () => void (ran += 1);
    await using app = await startOn(MEMORY, { book }, { observers: [one] });
    expect(await post(app, 'e-1', {})).toBe(200);
    await eventually(async () => {
      const { deliveries, headers } = (await inboxOf(app).get('e-1'))!;
      expect(deliveries).toMatchObject([{ state: 'done', attempts: 1 }]);
      expect(headers).not.toHaveProperty('traceparent');
    });
    expect(ran).toBe(1);
    // Node would exit if the module did not catch the rejection.
    if (/throws|rejects/.test(what))
      expect(app.log.matching(/An observer failed in .* the exporter is broken/)).toHaveLength(1);
  });

  it('TE-01 a rejection of an instrumentation is logged even after the application has closed', async () => {
    const observers: PaymentsInstrumentation[] = [{ attach: () => reject }];
    const app = await startOn(MEMORY, {}, { observers });
    await app[Symbol.asyncDispose]();
    await eventually(() =>
      expect(
        app.log.matching(/An observer failed in attach.* the exporter is broken/),
      ).toHaveLength(1),
    );
  });

  onMemoryAndSqlite((data) => {
    it('TE-01 all attempts of an event get the trace context of the event, and no attempt gets an invalid trace context', async () => {
      const spans = new Spans();
      const one: PaymentsInstrumentation = {
        startSpan: (operation) => ({ ...spans.startSpan(operation), traceparent: null }),
      };
      const shared = await data();
      const book: Handle = (_event, { attempt }) => {
        if (attempt === 1) throw new Error('broken');
      };
      await using app = await startOn(shared, { book }, { observers: [one] });
      const valid = traceparentOf(7);
      for (const [id, traceparent] of [
        ['e-1', valid],
        ['e-2', 'x; DROP'],
        ['e-3', '00-1-1-1'],
      ]) {
        const request = webhookRequest({ id: id!, eventType: 'transaction.updated' });
        await app.send({ ...request, headers: { ...request.headers, traceparent: traceparent! } });
      }
      await eventually(() => expect(spans.of('attempt')).toHaveLength(6));
      for (const [id, traceparent] of Object.entries({ 'e-1': valid, 'e-2': null, 'e-3': null })) {
        const attempts = spans
          .of('attempt')
          .filter((info) => 'eventId' in info && info.eventId === id);
        expect(attempts).toMatchObject([{ traceparent }, { traceparent }]);
      }
    });
  });
});
