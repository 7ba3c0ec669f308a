import { Injectable } from '@nestjs/common';
import type { OnModuleInit, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import type { ThrottledLogRuntime } from '../errors/module-log.js';
import { describeError, errorCodeOf } from '../errors/payments-error.js';
import { mustBe, optionsInvalid, shown } from '../errors/option-checks.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { callersGuard, guard } from '../errors/unhandled-rejections.js';
import { ProcessFacts } from './process-facts.js';

/**
 * The argument of each method of a {@link PaymentsObserver}: one frozen object with ids, times and outcomes. The object
 * never contains a payload, a secret or a token.
 */
export interface ObserverInfo {
  /** A new event was stored by this process. */
  eventReceived: {
    readonly company: string;
    readonly eventId: string;
    readonly eventType: string;
    /** The service's id of the transaction; `null` if the event has none. */
    readonly transactionId: string | null;
    /** How the event was received: by a webhook request, by a poll, or because an expectation became overdue. */
    readonly source: 'webhook' | 'poll' | 'overdue';
    /** The event's own time, in milliseconds since the epoch. */
    readonly occurredAtMs: number;
    /** How long the inbox took to store the event, in milliseconds. */
    readonly durationMs: number;
    /**
     * See `InboxReceipt.status`. `stored`: the event has deliveries. `unhandled`, `stale`: the event has no delivery.
     */
    readonly status: 'stored' | 'unhandled' | 'stale';
    /** The handlers that the event is delivered to. */
    readonly handlers: readonly string[];
  };
  /** A duplicate was received: the event is stored already, or its transaction is handled already. */
  eventDuplicate: Omit<ObserverInfo['eventReceived'], 'status' | 'handlers'> & {
    /** Id of the event that was stored first. */
    readonly storedId: string;
    /** `copy`: the same event. `conflict`: the same id with another body. `transaction`: see `oncePerTransaction`. */
    readonly reason: 'copy' | 'conflict' | 'transaction';
  };
  /** A webhook request got a response other than 2xx. */
  requestRejected: {
    readonly code: PaymentsErrorCode;
    /**
     * The company, if it exists; `null` if the path names no company or an unknown one, or if the company was not
     * looked up.
     */
    readonly company: string | null;
    /** Id of the event; `null` if the signature was not verified or the body is not an event. */
    readonly eventId: string | null;
    /** The cause, and usually the fix, as in the response or the log. */
    readonly message: string;
  };
  /** A worker service took a message from its engine, and then acknowledged, returned or rejected the message. */
  messageTaken: {
    /**
     * `acknowledged`: the event is stored. `retried`: the event could not be stored, and the engine delivers the message
     * again. `rejected`: the message is a dead letter.
     */
    readonly outcome: 'acknowledged' | 'retried' | 'rejected';
    /** Why the message was retried or rejected; `null` if it was acknowledged, or if the error has no code. */
    readonly errorCode: PaymentsErrorCode | null;
    /** How often the engine has delivered the message, including this time; at least 1. */
    readonly deliveries: number;
  };
  /** An attempt started: the module is about to call the handler. */
  attemptStarted: {
    readonly company: string;
    readonly eventId: string;
    readonly handler: string;
    /** Number of the attempt, from 1. */
    readonly attempt: number;
    readonly source: 'webhook' | 'poll' | 'overdue';
    /** When the event was received, by the store clock, in milliseconds since the epoch. */
    readonly receivedAtMs: number;
    /** Milliseconds from the receipt of the event to the start of the attempt. */
    readonly ageMs: number;
  };
  /** An attempt ended, and its outcome was stored or could not be stored. */
  attemptEnded: ObserverInfo['attemptStarted'] & {
    /**
     * - `done`: the handler succeeded, and the delivery is done.
     * - `failed`: the delivery runs again in `retryInMs`.
     * - `dead`: the attempt failed, and the delivery has no attempts left or the error is an `UnrecoverableError`.
     * - `released`: the attempt is not counted, because the application closes or another version of the handler is
     *   needed.
     * - `lost`: the outcome was not stored, because the lease was lost or the store was down when the application
     *   closed.
     */
    readonly outcome: 'done' | 'failed' | 'dead' | 'released' | 'lost';
    /** From the start of the attempt until its outcome was stored, in milliseconds. */
    readonly durationMs: number;
    /** Milliseconds until the next attempt; `null` if none is scheduled. */
    readonly retryInMs: number | null;
    /**
     * The error as the inbox stores it: one line of at most 1,000 characters; `null` if the handler succeeded. An error
     * with the outcome `done` means that the handler failed after its commit.
     */
    readonly error: string | null;
    /** The code of the error, if it is a `PaymentsError`: `handler_timeout`, for example. */
    readonly errorCode: PaymentsErrorCode | null;
    /** The innermost 10 lines of the error's stack, each after a line break; empty without a stack. */
    readonly stack: string;
  };
  /** A delivery became dead, so an operator has to act. Called after `attemptEnded`. */
  deliveryDead: ObserverInfo['attemptEnded'];
  /**
   * `PaymentInbox.redrive()` or a batch of `PaymentInbox.startRedrive()` changed deliveries. Also called if the redrive
   * failed after some changes.
   */
  deliveriesRedriven: {
    /** The company and the handler that the query selects. `null` if the query selects any of them, or several. */
    readonly company: string | null;
    readonly handler: string | null;
    readonly events: number;
    readonly deliveries: number;
  };
  /** A token request ended. */
  tokenFetched: {
    readonly company: string;
    /** `null`: the service returned a token. Otherwise `invalid_credentials` or `token_unavailable`. */
    readonly errorCode: PaymentsErrorCode | null;
    readonly durationMs: number;
  };
  /** A call to the payments service ended, including its retries. */
  apiCallEnded: {
    readonly company: string;
    /** HTTP method, in capitals. */
    readonly method: string;
    /**
     * Path template, for example `/v1/transactions/{id}`. If the call has no template, the value is the path with
     * `{id}` in place of each segment that contains a digit. A name or an e-mail address in a path is not replaced, so
     * give a `pathTemplate` for such paths.
     */
    readonly path: string;
    /** Status of the last response; `null` if there was none. */
    readonly status: number | null;
    /** `null`: the call succeeded. */
    readonly errorCode: PaymentsErrorCode | null;
    /** Number of HTTP requests. Token requests do not count. */
    readonly attempts: number;
    readonly durationMs: number;
  };
  /**
   * An expected payment became overdue, because no event arrived. Not called if the store fails or the process exits
   * right after this change, so use `PaymentExpectations.counts()` for alerts.
   */
  expectationOverdue: {
    readonly company: string;
    readonly reference: string;
    readonly transactionId: string | null;
  };
  /**
   * An event arrived for an expected payment. Not called if the store fails or the process exits right after it stored
   * the event.
   */
  expectationFulfilled: ObserverInfo['expectationOverdue'] & {
    readonly by: 'webhook' | 'poll';
    readonly eventId: string;
  };
  /** A poll of the service about an expected payment ended. */
  pollEnded: ObserverInfo['expectationOverdue'] & {
    /** See `PollResult`. `failed`: the poll itself failed, for example because the store was down. */
    readonly result: 'event' | 'pending' | 'unknown' | 'contradiction' | 'failed';
    readonly durationMs: number;
  };
}

/**
 * Observes what the module does, for an error tracker, alerts or metrics: see the option `observers`. Implement the
 * methods you need; {@link ObserverInfo} describes when each is called and what it gets. The module does not wait for a
 * returned promise. If an observer throws or rejects, the module logs the error, at most once a minute, and continues.
 *
 * @example
 * ```ts
 * const tracker: PaymentsObserver = {
 *   deliveryDead: ({ eventId, handler, error }) => alert(`Event ${eventId} is dead for ${handler}: ${error}`),
 * };
 * ```
 */
export type PaymentsObserver = {
  [M in keyof ObserverInfo]?: (info: ObserverInfo[M]) => unknown;
};

/** Work that an instrumentation can wrap in a span. */
export type TracedOperation =
  | ({ readonly kind: 'receive'; readonly traceparent: string | null } & Omit<
      ObserverInfo['eventReceived'],
      'durationMs' | 'status' | 'handlers'
    >)
  /**
   * `traceparent` is the trace context of the span of the receipt. Both `traceparent` and `eventType` are `null` if the
   * event could not be read.
   */
  | ({
      readonly kind: 'attempt';
      readonly traceparent: string | null;
      readonly eventType: string | null;
    } & ObserverInfo['attemptStarted'])
  | ({ readonly kind: 'call'; readonly baseUrl: string | null } & Pick<
      ObserverInfo['apiCallEnded'],
      'company' | 'method' | 'path'
    >)
  | ({ readonly kind: 'poll' } & ObserverInfo['expectationOverdue']);

export interface SpanResult {
  /**
   * The outcome of an attempt, the result of a poll or the status of a receipt; for other work, `failed` or
   * `succeeded`.
   */
  readonly outcome: string;
  /** The error in one line; `null` if the work succeeded. */
  readonly error: string | null;
  readonly errorCode: PaymentsErrorCode | null;
  /** Only for a call; see {@link ObserverInfo.apiCallEnded}. */
  readonly status?: number | null;
  readonly attempts?: number;
}

export interface PaymentsSpan {
  /**
   * The W3C trace context of the span. The inbox stores this trace context with a received event. If the value is
   * `null`, the inbox stores the sender's trace context.
   */
  readonly traceparent: string | null;
  /** Calls `work` once and immediately, with this span as the active span. */
  run(work: () => void): void;
  /** Ends the span. Called once. */
  end(result: SpanResult): void;
}

/**
 * The state of the inbox and the engine, for gauges. Each method but `engine` reads the store, and rejects if the store is
 * down.
 */
export interface ObservedInbox {
  handlers(): Promise<readonly { readonly name: string }[]>;
  stats(): Promise<{
    readonly deliveries: readonly {
      readonly handler: string;
      readonly state: 'pending' | 'running' | 'dead';
      readonly count: number;
    }[];
    readonly oldestPendingMs: number | null;
    readonly paused: readonly { readonly handler: string }[];
  }>;
  expectations(): Promise<
    Readonly<Record<'waiting' | 'overdueUnpaid' | 'overdueUnknown', { readonly count: number }>>
  >;
  /** Resolves with `null` if there is no engine. Never rejects. */
  engine(): Promise<{
    readonly connected: boolean;
    readonly lag?: number;
    readonly deadLetters?: number;
  } | null>;
}

/**
 * A {@link PaymentsObserver} that also traces and measures the module: the result of `openTelemetry()`. Internal:
 * applications see only the type {@link PaymentsObserver}.
 */
export interface PaymentsInstrumentation extends PaymentsObserver {
  /** Called when the application has started. The returned function is called when the application closes. */
  attach?(inbox: ObservedInbox): () => void;
  /** Starts a span, or returns `undefined`. If this method or a method of the span throws, only the trace is incomplete. */
  startSpan?(operation: TracedOperation): PaymentsSpan | undefined;
}

type ObserverOption = PaymentsObserver | Type<PaymentsObserver>;

export interface OperationEnd<R> {
  /** The result; `undefined` if the work threw. */
  readonly value: R | undefined;
  /** What the work threw. `error` describes the thrown value, and `errorCode` is its code. */
  readonly thrown: unknown;
  readonly error: string | null;
  readonly errorCode: PaymentsErrorCode | null;
  readonly durationMs: number;
}

/**
 * Calls the observers of the application. If an observer fails, the module logs the error and continues.
 *
 * Test {@link active} before you create an object for {@link notify}, so that no object is created if there are no
 * observers.
 */
@Injectable()
export class Observers implements OnModuleInit {
  active = false;
  /** The first observer that can start spans. */
  #tracer: PaymentsInstrumentation | undefined;
  /** Counts for operators, which are also complete if there are no observers. */
  readonly facts: ProcessFacts;
  #observers: readonly PaymentsInstrumentation[] = [];
  readonly #detach: (() => void)[] = [];
  readonly #failures: ThrottledLog;

  constructor(
    private readonly options: readonly ObserverOption[],
    private readonly runtime: ThrottledLogRuntime & Pick<PaymentsRuntime, 'now'>,
    /** Finds the providers; `null` if {@link options} contains no class. */
    private readonly moduleRef: Pick<ModuleRef, 'get'> | null = null,
  ) {
    this.facts = new ProcessFacts(runtime);
    this.#failures = new ThrottledLog(new ModuleLogger('PaymentObservers'), runtime);
    this.#use(options.filter((option) => typeof option !== 'function'));
  }

  /** @throws PaymentsError `options_invalid` if a class has no provider, or if the provider is not a singleton. */
  onModuleInit(): void {
    if (this.options.some((option) => typeof option === 'function')) {
      this.#use(this.options.map((option) => this.#resolve(option)));
    }
  }

  /** Passes the inbox to the instrumentations, which use it until {@link detach}. Never throws. */
  attach(inbox: ObservedInbox): void {
    this.#callEach('attach', (observer) => {
      const detach = observer.attach?.(inbox);
      if (typeof detach === 'function') this.#detach.push(detach);
      return detach;
    });
  }

  /**
   * Calls the functions that the instrumentations returned from `attach`, so that they stop using the inbox. Never
   * throws.
   */
  detach(): void {
    for (const detach of this.#detach.splice(0)) this.#attempt('attach', detach);
  }

  /** Adds an observer until the returned function is called. */
  subscribe(observer: PaymentsObserver): () => void {
    this.#use([...this.#observers, observer]);
    return () => this.#use(this.#observers.filter((other) => other !== observer));
  }

  /** Counts a rejected webhook request, and notifies the observers. Never throws. */
  requestRejected(info: ObserverInfo['requestRejected']): void {
    this.facts.rejected(info);
    if (this.active) this.notify('requestRejected', info);
  }

  /** Calls a method of all observers that implement it, without waiting for them. Never throws. */
  notify<M extends keyof ObserverInfo>(method: M, info: ObserverInfo[M]): void {
    Object.freeze(info);
    this.#callEach(method, (observer) =>
      (observer[method] as ((info: ObserverInfo[M]) => unknown) | undefined)?.(info),
    );
  }

  /**
   * Runs `work` in a span, if an observer traces, and passes the trace context of the span to `work`. Then calls
   * `ended` with the result, or with what `work` threw. `ended` notifies the observers, and returns the result of the
   * span. Returns or throws what `work` does. Calls `ended` for a call to the service even without observers, because
   * operators see the results of these calls.
   */
  async observe<R>(
    operation: TracedOperation,
    work: (traceparent: string | null) => Promise<R>,
    ended: (end: OperationEnd<R>) => SpanResult,
  ): Promise<R> {
    if (!this.active && operation.kind !== 'call') return work(null);
    const span = this.#startSpan(operation);
    const startedAt = this.runtime.monotonic();
    const end = (result: Omit<OperationEnd<R>, 'durationMs'>): void => {
      const durationMs = this.runtime.monotonic() - startedAt;
      const spanResult = Object.freeze(ended({ ...result, durationMs }));
      if (span) this.#attempt('startSpan', () => span.end(spanResult));
    };
    let value: R;
    try {
      value = await (span ? this.#runIn(span, () => work(this.#traceparentOf(span))) : work(null));
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
    this.#tracer = undefined;
    this.#callEach('startSpan', (observer) => {
      if (typeof observer.startSpan === 'function') this.#tracer ??= observer;
    });
  }

  #startSpan(operation: TracedOperation): PaymentsSpan | undefined {
    const tracer = this.#tracer;
    if (tracer === undefined) return undefined;
    let span: PaymentsSpan | undefined;
    this.#attempt('startSpan', () => (span = tracer.startSpan!(Object.freeze(operation))));
    return typeof span?.run === 'function' ? span : undefined;
  }

  #traceparentOf(span: PaymentsSpan): string | null {
    let traceparent: unknown;
    this.#attempt('startSpan', () => (traceparent = span.traceparent));
    return validTraceparent(traceparent);
  }

  /** Calls `work` exactly once, with the span as the active span. Returns or throws what `work` does. */
  #runIn<R>(span: PaymentsSpan, work: () => R): R {
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
    this.#attempt('startSpan', () => span.run(once));
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
        `"observers" contains the class ${option.name}, but the application has no provider of this class with the ` +
          `default scope. Add it to the providers of a module, or give an object. ${describeError(error)}`,
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

  /**
   * Handles the rejection of a promise that an observer returned. By default, Node would exit because of the rejection.
   */
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

/** An instance without observers, for a class that is created without the module. */
export const NO_OBSERVERS = new Observers([], {
  now: () => 0,
  monotonic: () => 0,
  schedule: () => () => {},
});

export function errorFacts(thrown: unknown) {
  return { error: describeError(thrown), errorCode: errorCodeOf(thrown) };
}

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

/** The format of a `traceparent`. Later versions of the format may have more fields. */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}(-[\da-f-]{0,200})?$/;

export function validTraceparent(traceparent: unknown): string | null {
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null;
}
