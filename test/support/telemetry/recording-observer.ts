import type { PaymentsObserver } from 'nestjs-payments';

/** Every method of {@link PaymentsObserver}. */
export const OBSERVER_METHODS = Object.keys({
  eventReceived: true,
  eventDuplicate: true,
  requestRejected: true,
  messageTaken: true,
  attemptStarted: true,
  attemptEnded: true,
  deliveryDead: true,
  deliveriesRedriven: true,
  tokenFetched: true,
  apiCallEnded: true,
  expectationFulfilled: true,
  expectationOverdue: true,
  pollEnded: true,
} satisfies Record<keyof PaymentsObserver, true>) as (keyof PaymentsObserver)[];

type Info = Readonly<Record<string, unknown>>;

/** An observer with all methods, each of which calls `each`. */
export function observerOf(
  each: (method: keyof PaymentsObserver, info: object) => unknown,
): PaymentsObserver {
  return Object.fromEntries(
    OBSERVER_METHODS.map((method) => [method, (info: object) => each(method, info)]),
  );
}

/** An observer that records its calls. */
export class Observed {
  readonly calls: { readonly method: keyof PaymentsObserver; readonly info: Info }[] = [];
  readonly observer = observerOf((method, info) => {
    this.calls.push({ method, info: info as Info });
  });

  /** The arguments of the calls of a method. */
  of(method: keyof PaymentsObserver): Info[] {
    return this.calls.filter((call) => call.method === method).map(({ info }) => info);
  }
}
