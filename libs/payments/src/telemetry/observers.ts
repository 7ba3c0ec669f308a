import { Injectable } from '@nestjs/common';
import type { OnModuleInit, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import type { ThrottledLogRuntime } from '../errors/module-log.js';
import { describeError, errorCodeOf } from '../errors/payments-error.js';
import { mustBe, optionsInvalid, shown } from '../errors/option-checks.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import { callersGuard, guard } from '../errors/unhandled-rejections.js';
import type {
  ObservedInbox,
  ObserverInfo,
  PaymentsInstrumentation,
  PaymentsObserver,
  PaymentsSpan,
  SpanResult,
  TracedOperation,
} from './payments-observer.js';

type ObserverOption = PaymentsObserver | Type<PaymentsObserver>;

/** How the work of {@link Observers.observe} ended. */
export interface OperationEnd<R> {
  /** The result; `undefined` if the work threw. */
  readonly value: R | undefined;
  /** What the work threw, and its description and code. */
  readonly thrown: unknown;
  readonly error: string | null;
  readonly errorCode: PaymentsErrorCode | null;
  readonly durationMs: number;
}

/**
 * Calls the observers of the application. An error of an observer is logged, and changes nothing else.
 *
 * Test {@link active} before you create an object for {@link notify}, so that nothing is created without observers.
 */
@Injectable()
export class Observers implements OnModuleInit {
  /** Whether there are observers. */
  active = false;
  /** Whether an observer starts spans. */
  tracing = false;
  #observers: readonly PaymentsInstrumentation[] = [];
  readonly #detach: (() => void)[] = [];
  readonly #failures: ThrottledLog;

  constructor(
    private readonly options: readonly ObserverOption[],
    private readonly runtime: ThrottledLogRuntime,
    /** Finds the providers; `null` if {@link options} contains no class. */
    private readonly moduleRef: Pick<ModuleRef, 'get'> | null = null,
  ) {
    this.#failures = new ThrottledLog(new ModuleLogger('PaymentObservers'), runtime);
    this.#use(options.filter((option) => typeof option !== 'function'));
  }

  /**
   * Finds the providers of observers that the application gave as classes.
   *
   * @throws PaymentsError `options_invalid` if there is no such provider, or if it is not a singleton.
   */
  onModuleInit(): void {
    if (this.options.some((option) => typeof option === 'function')) {
      this.#use(this.options.map((option) => this.#resolve(option)));
    }
  }

  /** Gives the inbox to the instrumentations, until {@link detach}. Never throws. */
  attach(inbox: ObservedInbox): void {
    this.#callEach('attach', (observer) => {
      const detach = observer.attach?.(inbox);
      if (typeof detach === 'function') this.#detach.push(detach);
      return detach;
    });
  }

  /** Never throws. */
  detach(): void {
    for (const detach of this.#detach.splice(0)) this.#attempt('attach', detach);
  }

  /** Calls a method of all observers that have it, and waits for none. Never throws. */
  notify<M extends keyof ObserverInfo>(method: M, info: ObserverInfo[M]): void {
    Object.freeze(info);
    this.#callEach(method, (observer) =>
      (observer[method] as ((info: ObserverInfo[M]) => unknown) | undefined)?.(info),
    );
  }

  /**
   * Runs `work` in a span of each instrumentation, and passes the trace context of the span to it. `ended` gets the
   * result, or what `work` threw: it reports that to the observers, and returns how the span ended. Returns or throws what
   * `work` does.
   */
  async observe<R>(
    operation: TracedOperation,
    work: (traceparent: string | null) => Promise<R>,
    ended: (end: OperationEnd<R>) => SpanResult,
  ): Promise<R> {
    if (!this.active) return work(null);
    const spans = this.tracing ? this.#startSpans(operation) : [];
    const startedAt = this.runtime.monotonic();
    const end = (result: Omit<OperationEnd<R>, 'durationMs'>): void => {
      const durationMs = this.runtime.monotonic() - startedAt;
      const spanResult = Object.freeze(ended({ ...result, durationMs }));
      for (const span of spans) this.#attempt('startSpan', () => span.end(spanResult));
    };
    let value: R;
    try {
      value = await (spans.length === 0
        ? work(null)
        : this.#runIn(spans, () => work(this.#traceparentOf(spans))));
    } catch (thrown) {
      end({ value: undefined, thrown, ...errorFacts(thrown) });
      throw thrown;
    }
    end({ value, thrown: undefined, error: null, errorCode: null });
    return value;
  }

  #use(observers: readonly PaymentsInstrumentation[]): void {
    this.#observers = observers;
    this.active = observers.length > 0;
    this.tracing = false;
    this.#callEach('startSpan', (observer) => {
      this.tracing ||= typeof observer.startSpan === 'function';
    });
  }

  /** Starts a span of each instrumentation. Never throws. */
  #startSpans(operation: TracedOperation): readonly PaymentsSpan[] {
    Object.freeze(operation);
    const spans: PaymentsSpan[] = [];
    this.#callEach('startSpan', (observer) => {
      const span = observer.startSpan?.(operation);
      if (typeof span?.run === 'function') spans.push(span);
      return span;
    });
    return spans;
  }

  /** The trace context of the first span that has a valid one; otherwise `null`. */
  #traceparentOf(spans: readonly PaymentsSpan[]): string | null {
    let found: string | null = null;
    for (const span of spans) {
      this.#attempt('startSpan', () => {
        const { traceparent } = span;
        found ??= validTraceparent(traceparent);
        return traceparent;
      });
    }
    return found;
  }

  /** Calls `work` exactly once, with the spans as the active ones. Returns or throws what `work` does. */
  #runIn<R>(spans: readonly PaymentsSpan[], work: () => R): R {
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
    const nested = spans.reduceRight<() => void>(
      (inner, span) => () => this.#attempt('startSpan', () => span.run(inner)),
      once,
    );
    nested();
    // An instrumentation may have failed before it called the work.
    once();
    if ('thrown' in result!) throw result.thrown;
    return result!.value;
  }

  #resolve(option: ObserverOption): PaymentsInstrumentation {
    if (typeof option !== 'function') return option;
    try {
      return this.moduleRef!.get<PaymentsInstrumentation>(option, { strict: false });
    } catch (error) {
      throw optionsInvalid(
        `"observers" contains the class ${option.name}, and the application has no provider of it with the default ` +
          `scope. Add it to the providers of a module, or give an object. ${describeError(error)}`,
      );
    }
  }

  #callEach(method: string, call: (observer: PaymentsInstrumentation) => unknown): void {
    for (const observer of this.#observers) this.#attempt(method, () => call(observer));
  }

  #attempt(method: string, work: () => unknown): void {
    try {
      const result = guard((reason) => this.#failed(method, reason), work);
      if (result !== undefined) this.#handleRejection(method, result);
    } catch (error) {
      this.#failed(method, error);
    }
  }

  /** Logs the rejection of a promise that an observer returned. By default, Node would exit on it. */
  #handleRejection(method: string, result: unknown): void {
    if (typeof (result as PromiseLike<unknown> | null)?.then !== 'function') return;
    Promise.resolve(result).catch((error: unknown) => this.#failed(method, error));
  }

  #failed(method: string, error: unknown): void {
    this.#failures.warn(
      method,
      () => `An observer failed in ${method}(). Nothing else is affected. ${describeError(error)}`,
    );
  }
}

/** No observers: for a class that is created without the module. */
export const NO_OBSERVERS = new Observers([], {
  monotonic: () => 0,
  schedule: () => () => {},
});

/** The description and the code of an error, for observers. Never throws. */
export function errorFacts(thrown: unknown) {
  return { error: describeError(thrown), errorCode: errorCodeOf(thrown) };
}

/**
 * Checks the option `observers`.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function resolveObservers(
  observers: readonly ObserverOption[] | undefined = [],
): readonly ObserverOption[] {
  if (!Array.isArray(observers)) {
    throw mustBe('observers', 'an array', observers);
  }
  for (const observer of observers as readonly unknown[]) {
    if ((typeof observer === 'object' && observer !== null) || typeof observer === 'function') {
      continue;
    }
    throw optionsInvalid(
      '"observers" must contain objects with methods of PaymentsObserver, or classes of providers; it contains ' +
        `${shown(observer)}.`,
    );
  }
  return Object.freeze([...(observers as readonly ObserverOption[])]);
}

/** Later versions of the format may have more fields. */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}(-[\da-f-]{0,200})?$/;

/** The trace context, if it has the format of a `traceparent`; otherwise `null`. */
export function validTraceparent(traceparent: unknown): string | null {
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null;
}
