import { LogLine } from '../../errors/log-line.js';
import { describeError } from '../../errors/payments-error.js';
import type { HandlerPolicy } from './worker-options.js';
import type { AttemptOutcome } from './attempt-outcomes.js';
import type { WorkerHeartbeat } from './worker-heartbeat.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';
import type { AttemptServices } from './attempt-context.js';
import { HandlerAttempt } from './handler-attempt.js';
import type { AttemptHooks, AttemptResult } from './handler-attempt.js';
import type { HandlerSlots } from './handler-slots.js';

/** How long a handler may take to end after its signal was aborted, before it counts as ignoring its signal. */
const END_MS = 500;

/** Slots that are reserved for the deliveries of an event that is being received. */
export interface SlotReservation {
  /** Id of the worker. */
  readonly worker: string;
  /** The handlers that have a reserved slot. */
  readonly handlers: readonly string[];
  /**
   * Runs the deliveries that the store assigned, and frees the other slots. Call it exactly once: with `null` if the
   * receive failed and may have taken effect.
   */
  start(claimed: readonly ClaimedDelivery[] | null): void;
}

/** The parts of the worker that {@link RunningAttempts} uses. */
export interface AttemptingWorker {
  readonly services: AttemptServices;
  readonly slots: HandlerSlots;
  readonly heartbeat: WorkerHeartbeat;
  /** Whether attempts may start. */
  active(): boolean;
  policy(handler: string): HandlerPolicy;
  /** Called when a slot has become free. */
  onFree(): void;
  /** Called when an attempt has ended. */
  onEnded(delivery: ClaimedDelivery, result: AttemptResult): void;
}

/** The attempts that run in this process, and the worker ids that lease their deliveries. */
export class RunningAttempts {
  readonly #running = new Map<HandlerAttempt, string>();
  /** How many attempts and reservations there are, by worker id. */
  readonly #uses = new Map<string, number>();
  #ignoringSignal = 0;

  constructor(private readonly worker: AttemptingWorker) {}

  /** How many attempts have not ended. */
  get size(): number {
    return this.#running.size;
  }

  /** How many handlers still run although their signal was aborted at least 500 ms ago. Their attempts have failed. */
  get ignoringSignal(): number {
    return this.#ignoringSignal;
  }

  /** Whether an attempt or a reservation uses that worker id. */
  uses(id: string): boolean {
    return this.#uses.has(id);
  }

  /** Creates a reservation of slots that were already taken. */
  reserve(id: string, handlers: readonly string[]): SlotReservation {
    const { slots, heartbeat } = this.worker;
    this.#addUse(id);
    const start: SlotReservation['start'] = (claimed) => {
      if (claimed === null) heartbeat.replace(id);
      for (const handler of handlers) {
        const delivery = claimed?.find((one) => one.handler === handler);
        if (delivery === undefined) slots.free(handler);
        else void this.start(delivery, id);
      }
      this.#removeUse(id);
      this.worker.onFree();
    };
    return { worker: id, handlers, start };
  }

  /** Starts an attempt of a delivery that the worker id leases and whose slot is taken. Resolves when it has ended. */
  async start(delivery: ClaimedDelivery, id: string): Promise<void> {
    const { services, slots, heartbeat } = this.worker;
    const { handler } = delivery;
    if (!this.worker.active() || !heartbeat.mayStart(id)) return this.#release(delivery, id);
    this.#addUse(id);
    const hooks: AttemptHooks = {
      onSlotFree: () => {
        slots.handled(handler);
        this.worker.onFree();
      },
      onTimeUp: (handled) => this.#countIfIgnored(delivery, handled),
    };
    const policy = this.worker.policy(handler);
    const attempt = new HandlerAttempt(delivery, policy, services, hooks);
    this.#running.set(attempt, id);
    const result = await attempt.ended;
    this.#running.delete(attempt);
    slots.settled(handler);
    this.#removeUse(id);
    this.worker.onEnded(delivery, result);
  }

  /** Aborts all signals, because the application closes. */
  abandon(): void {
    for (const attempt of this.#running.keys()) attempt.abandon();
  }

  /** Aborts the signals of the attempts of a worker id whose deliveries the store freed. Returns how many there are. */
  lose(id: string): number {
    const lost = [...this.#running].filter(([, worker]) => worker === id);
    for (const [attempt] of lost) attempt.lose();
    return lost.length;
  }

  /** Releases a delivery that was claimed too late. The attempt is not counted. */
  async #release(delivery: ClaimedDelivery, id: string): Promise<void> {
    const { services, slots, heartbeat } = this.worker;
    try {
      await services.store.release(delivery);
    } catch (error) {
      // Otherwise heartbeats of that id would keep the lease, and no process would run the delivery.
      heartbeat.replace(id);
      services.throttled.warn(
        'release',
        () =>
          new LogLine(
            `A delivery could not be released: ${describeError(error)}. The store frees it once its worker has retired.`,
            delivery,
          ),
      );
    }
    slots.free(delivery.handler);
    slots.wake([delivery.handler]);
    this.worker.onFree();
  }

  /** Counts and logs a handler that does not end soon after its signal was aborted. */
  #countIfIgnored(delivery: ClaimedDelivery, handled: Promise<unknown>): void {
    const { handler } = delivery;
    const { runtime, throttled } = this.worker.services;
    let counted = false;
    const cancel = runtime.schedule(END_MS, () => {
      counted = true;
      this.#ignoringSignal += 1;
      throttled.warn(
        `overdue ${handler}`,
        () =>
          new LogLine(
            `Handler ${handler} still runs although its time limit has passed and its signal was aborted ` +
              `(${this.#ignoringSignal} such handlers in this process). It may overlap with the next attempt. Pass ` +
              'context.signal to what the handler calls.',
            delivery,
          ),
      );
    });
    void handled.then(() => {
      cancel();
      if (counted) this.#ignoringSignal -= 1;
    });
  }

  #addUse(id: string): void {
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1);
  }

  #removeUse(id: string): void {
    const left = this.#uses.get(id)! - 1;
    if (left > 0) this.#uses.set(id, left);
    else this.#uses.delete(id);
    this.worker.heartbeat.unused(id);
  }
}

/** The result of `PaymentInbox.runDue()`. */
export interface RunDueResult {
  /** Attempts whose handler succeeded. */
  readonly done: number;
  /** Attempts that failed. Their deliveries run again later, or are dead. */
  readonly failed: number;
  /** Whether `forMs` passed, or the application closed, while a delivery was due or running. */
  readonly more: boolean;
}

interface RunDueCall {
  done: number;
  failed: number;
  readonly end: (more: boolean) => void;
}

/** The calls of `PaymentInbox.runDue()` that have not resolved. */
export class RunDueCalls {
  readonly #calls = new Set<RunDueCall>();

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** Whether there are any. */
  get any(): boolean {
    return this.#calls.size > 0;
  }

  /** Resolves when {@link end} is called, or after `forMs`. */
  add(forMs: number): Promise<RunDueResult> {
    return new Promise((resolve) => {
      const end = (more: boolean): void => {
        cancel();
        this.#calls.delete(call);
        resolve({ done: call.done, failed: call.failed, more });
      };
      const call: RunDueCall = { done: 0, failed: 0, end };
      const cancel = this.runtime.schedule(forMs, () => end(true));
      this.#calls.add(call);
    });
  }

  /** Counts an attempt that has ended, for each call. */
  count(outcome: AttemptOutcome): void {
    for (const call of this.#calls) call[outcome === 'completed' ? 'done' : 'failed'] += 1;
  }

  /** Resolves all calls. */
  end(more: boolean): void {
    for (const call of this.#calls) call.end(more);
  }
}
