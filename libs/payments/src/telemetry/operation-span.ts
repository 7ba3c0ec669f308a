import { callersGuard } from '../errors/unhandled-rejections.js';
import type { PaymentsSpan, SpanResult } from './payments-observer.js';

/** Later versions of the format may have more fields. */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}(-[\da-f-]{0,200})?$/;

/** The trace context, if it has the format of a `traceparent`; otherwise `null`. */
export function validTraceparent(traceparent: unknown): string | null {
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null;
}

/** The spans of one operation, one of each instrumentation. No method throws an error of an instrumentation. */
export class OperationSpan {
  constructor(
    private readonly spans: readonly PaymentsSpan[],
    private readonly attempt: (work: () => unknown) => void,
  ) {}

  /** The trace context of the first span that has a valid one; otherwise `null`. */
  get traceparent(): string | null {
    let found: string | null = null;
    for (const span of this.spans) {
      this.attempt(() => {
        const { traceparent } = span;
        found ??= validTraceparent(traceparent);
        return traceparent;
      });
    }
    return found;
  }

  /** Calls `work` exactly once, with the spans as the active ones. Returns or throws what `work` does. */
  run<R>(work: () => R): R {
    let result: { readonly value: R } | { readonly thrown: unknown } | undefined;
    const inCallersGuard = callersGuard();
    const once = (): void => {
      if (result !== undefined) return;
      try {
        result = { value: inCallersGuard(work) };
      } catch (thrown) {
        result = { thrown };
      }
    };
    const nested = this.spans.reduceRight<() => void>(
      (inner, span) => () => this.attempt(() => span.run(inner)),
      once,
    );
    nested();
    // An instrumentation may have failed before it called the work.
    once();
    if ('thrown' in result!) throw result.thrown;
    return result!.value;
  }

  end(result: SpanResult): void {
    Object.freeze(result);
    for (const span of this.spans) this.attempt(() => span.end(result));
  }
}
