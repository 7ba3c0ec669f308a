import { describe, expect, it } from '@jest/globals';
import { turns } from '../../../../../test/support/inbox/worker-harness.js';
import { Observed } from '../../../../../test/support/telemetry/recording-observer.js';
import { FakeRuntime } from '../../../../../test/support/time/fake-runtime.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import { none } from '../../events/retry-schedule.js';
import { Observers } from '../../telemetry/observers.js';
import type { PaymentsInstrumentation, TracedOperation } from '../../telemetry/observers.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';
import { Attempt } from './attempt.js';
import type { AttemptServices } from './attempt.js';

describe('Attempt with observers', () => {
  /** Runs an attempt that takes 5 ms, needs another version of its handler, and keeps its slot for 1 s. */
  const run = async () => {
    const runtime = new FakeRuntime();
    const observed = new Observed();
    const spans: TracedOperation[] = [];
    const startSpan = (operation: TracedOperation): undefined => void spans.push(operation);
    const dispatch = async (): Promise<never> => {
      runtime.advance(5);
      throw new OtherVersionError('book', 'a.b');
    };
    const services = {
      runtime,
      // A store without `find`: an attempt reads nothing for its span.
      store: { release: async () => ({ settled: true, nextDue: false }) },
      throttled: { warn: () => {} },
      catalog: { takesElsewhere: () => true, refresh: async () => {} },
      dispatcher: { dispatch },
      bodies: { decode: async (raw: Buffer) => raw },
      observers: new Observers(
        [observed.observer, { startSpan } as PaymentsInstrumentation],
        runtime,
      ),
    } as unknown as AttemptServices;
    const raw = Buffer.from(
      JSON.stringify({ id: 'e', eventType: 'a.b', timestamp: '2026-01-01T00:00:00Z', data: {} }),
    );
    const delivery = { id: 'e', handler: 'book', attempt: 1, raw, receivedAt: new Date(0) };
    const policy = { concurrency: 1, timeoutMs: 30_000, retry: none };
    const claimed = delivery as unknown as ClaimedDelivery;
    const ended = new Attempt(claimed, policy, services).run(() => {});
    await turns();
    runtime.advance(1000);
    await ended;
    return { spans, ended: observed.of('attemptEnded') };
  };

  it('TE-01 the measured duration of a released attempt ends when its outcome is stored, not when its slot is free', async () => {
    expect((await run()).ended).toMatchObject([{ outcome: 'released', durationMs: 5 }]);
  });

  it('TE-01 the span of an attempt has no event type and no link if the store returns no facts of the event', async () => {
    expect((await run()).spans).toMatchObject([{ traceparent: null, eventType: null }]);
  });
});
