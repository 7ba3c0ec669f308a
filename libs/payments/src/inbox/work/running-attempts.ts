import { describeError } from '../../errors/payments-error.js';
import { HandlerAttempt } from './handler-attempt.js';
import type { AttemptResult, AttemptServices } from './handler-attempt.js';
import type { HandlerSlots } from './handler-slots.js';
import type { HandlerPolicy } from '../inbox-options.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';
import type { WorkerHeartbeat } from '../recover/worker-heartbeat.js';

/** Places that are kept free for deliveries of an event that is being received. */
export interface SlotReservation {
  /** Id of the worker. */
  readonly worker: string;
  /** The handlers that have a place. */
  readonly handlers: readonly string[];
  /**
   * Runs the deliveries that were assigned, and frees the other places. Call it exactly once: with `null` if the receive
   * failed in a way that leaves open whether it took effect.
   */
  start(claimed: readonly ClaimedDelivery[] | null): void;
}

/** What the runs need of the worker. */
export interface HostingWorker {
  readonly services: AttemptServices;
  readonly places: HandlerSlots;
  readonly registration: WorkerHeartbeat;
  /** Whether runs may start. */
  working(): boolean;
  policy(handler: string): HandlerPolicy;
  /** A place is free. */
  onFree(): void;
  onEnded(delivery: ClaimedDelivery, run: AttemptResult): void;
}

/** The runs of this process, and the worker ids that they hold deliveries under. */
export class RunningAttempts {
  readonly #running = new Map<HandlerAttempt, string>();
  /** How many runs and reservations there are by worker id. */
  readonly #held = new Map<string, number>();

  constructor(private readonly worker: HostingWorker) {}

  /** How many have not ended. */
  get size(): number {
    return this.#running.size;
  }

  /** Whether anything runs, or has a reservation, under that worker id. */
  holds(id: string): boolean {
    return this.#held.has(id);
  }

  /** Runs deliveries under that worker id at places that are taken, once it is known which were assigned. */
  reserve(id: string, handlers: readonly string[]): SlotReservation {
    const { places, registration } = this.worker;
    this.#hold(id);
    const start: SlotReservation['start'] = (claimed) => {
      if (claimed === null) registration.replace(id);
      for (const handler of handlers) {
        const delivery = claimed?.find((one) => one.handler === handler);
        if (delivery === undefined) places.free(handler);
        else void this.start(delivery, id);
      }
      this.#letGo(id);
      this.worker.onFree();
    };
    return { worker: id, handlers, start };
  }

  /** Runs a delivery that was claimed for that worker id, and whose place is taken. Resolves when it has ended. */
  async start(delivery: ClaimedDelivery, id: string): Promise<void> {
    const { services, places, registration } = this.worker;
    const { handler } = delivery;
    if (!this.worker.working() || !registration.mayRun(id)) return this.#giveBack(delivery, id);
    this.#hold(id);
    const run = new HandlerAttempt(delivery, this.worker.policy(handler), services, () => {
      places.handled(handler);
      this.worker.onFree();
    });
    this.#running.set(run, id);
    const ended = await run.ended;
    this.#running.delete(run);
    places.settled(handler);
    this.#letGo(id);
    this.worker.onEnded(delivery, ended);
  }

  /** The application closes: aborts all signals. */
  abandon(): void {
    for (const run of this.#running.keys()) run.abandon();
  }

  /** The store freed the deliveries of that worker id: aborts their signals. Returns how many there are. */
  lose(id: string): number {
    const lost = [...this.#running].filter(([, worker]) => worker === id);
    for (const [run] of lost) run.lose();
    return lost.length;
  }

  /** Returns a delivery that was claimed too late, without a charge. */
  async #giveBack(delivery: ClaimedDelivery, id: string): Promise<void> {
    const { services, places, registration } = this.worker;
    try {
      await services.store.release(delivery);
    } catch (error) {
      // Otherwise heartbeats of that id would keep the lease, and no process would run the delivery.
      registration.replace(id);
      services.throttled.warn(
        'release',
        () =>
          `A delivery could not be returned: ${describeError(error)}. The store frees it once its worker has retired.`,
      );
    }
    places.free(delivery.handler);
    places.wake([delivery.handler]);
    this.worker.onFree();
  }

  #hold(id: string): void {
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
  }

  #letGo(id: string): void {
    const left = this.#held.get(id)! - 1;
    if (left > 0) this.#held.set(id, left);
    else this.#held.delete(id);
    this.worker.registration.ended(id);
  }
}
