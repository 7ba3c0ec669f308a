import type {
  ClaimedDelivery,
  ClaimedPoll,
  ClaimRequest,
  DeliverySelection,
  HeartbeatResult,
  IncomingEvent,
  Lease,
  PollSettlement,
  SettledPoll,
  SettleResult,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { ExpectationModel } from './expectation-model.ts';
import type { DeliveryModel } from './delivery-model.ts';
import type { StoreObserver, StoreOperation } from './faulty-store.ts';
import type { AttemptJournal } from './attempt-journal.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** The actions to run after an operation took effect. Operations that are not listed need no action. */
type Observers = Partial<Record<StoreOperation, () => void | Promise<void>>>;

/** Reports each store operation that took effect to the attempt journal and, if `exact`, to the delivery model. */
export class StoreObservation implements StoreObserver {
  readonly violations: string[] = [];
  readonly #journal: AttemptJournal;
  readonly #model: DeliveryModel;
  readonly #expectations: ExpectationModel;
  readonly #exact: boolean;
  readonly #trace: (line: () => string) => void;

  constructor(
    journal: AttemptJournal,
    model: DeliveryModel,
    expectations: ExpectationModel,
    /** `exact` is whether store operations take effect one at a time, so that the model can check each operation. */
    setup: { readonly exact: boolean },
    trace: (line: () => string) => void,
  ) {
    this.#journal = journal;
    this.#model = model;
    this.#expectations = expectations;
    this.#exact = setup.exact;
    this.#trace = trace;
  }

  called(process: SimulatedProcess, operation: StoreOperation): void {
    const claims = operation === 'claim' || operation === 'claimSuspect';
    if (claims && process.draining)
      this.violations.push(`IN-24 ${process.name} claimed deliveries while it drained`);
  }

  worked(process: SimulatedProcess, lease: Lease): void {
    if (!this.#exact) this.#journal.committed(process, lease);
  }

  async ended(
    process: SimulatedProcess,
    operation: StoreOperation,
    parameters: readonly unknown[],
    outcome: { readonly result: unknown } | { readonly error: unknown },
    sentAt: number,
  ): Promise<void> {
    const result = 'result' in outcome ? outcome.result : undefined;
    this.#trace(() => `${process.name} ${operation} ${shown(parameters)} -> ${shown(outcome)}`);
    const done = 'result' in outcome;
    const [first, second] = parameters;
    if (operation === 'register' && done)
      this.#journal.heartbeat((first as WorkerRegistration).id, sentAt);
    if (operation === 'heartbeat' && done && (result as HeartbeatResult).alive)
      this.#journal.heartbeat(first as string, sentAt);
    if (operation === 'retire' && done) this.#retired(process, first as string, second as number);
    if (operation === 'heartbeat' && done && !(result as HeartbeatResult).alive) {
      this.#journal.declaredDead(first as string);
    }
    this.#journalClaims(process, operation, first, result);
    if (operation === 'commit' && done) this.#journal.committed(process, first as Lease);
    if (!this.#exact) return;
    if (done && operation.startsWith('expectations.'))
      await this.#observeExpectation(operation, parameters, result);
    else await this.#observeExactly(operation, parameters, outcome);
  }

  answered(
    process: SimulatedProcess,
    operation: StoreOperation,
    [worker]: readonly unknown[],
    result: unknown,
  ): void {
    if (operation !== 'heartbeat' || (result as HeartbeatResult).alive) return;
    // The worker has got the result of its heartbeat.
    process.runtime.schedule(50, () => this.#journal.checkAborted(process, worker as string));
  }

  /** A retired worker without running deliveries is removed immediately, without a grace period. */
  #retired(process: SimulatedProcess, worker: string, graceMs: number): void {
    const removed = this.#exact && !this.#model.holds(worker);
    this.#journal.retired(worker, removed ? 0 : graceMs, process.draining && !removed);
  }

  #journalClaims(
    process: SimulatedProcess,
    operation: StoreOperation,
    request: unknown,
    result: unknown,
  ): void {
    const note = (worker: string, claimed: StoreReceipt['claimed']): void => {
      for (const lease of claimed) this.#journal.claimed(process, worker, lease);
    };
    if (operation === 'claim' && result) {
      note((request as ClaimRequest).workerId, result as ClaimedDelivery[]);
    }
    if (operation === 'claimSuspect' && result) {
      note((request as SuspectRequest).workerId, [result as ClaimedDelivery]);
    }
    if (operation === 'receive' && result) {
      (result as StoreReceipt[]).forEach(({ claimed }, index) => {
        note((request as IncomingEvent[])[index]!.assign?.workerId ?? '?', claimed);
      });
    }
  }

  async #observeExpectation(
    operation: StoreOperation,
    parameters: readonly unknown[],
    result: unknown,
  ): Promise<void> {
    const model = this.#expectations;
    const [first, second, third] = parameters as [never, never, never];
    const observers: Observers = {
      'expectations.expect': () => model.expected(first, result as boolean),
      'expectations.attach': () => model.attached(first, second, third, result),
      'expectations.cancel': () => model.cancelled(first, second, result as boolean),
      'expectations.startRequest': () =>
        model.requestStarted(first, second, third, result as never),
      'expectations.endRequest': () => model.requestEnded(first, second, third, result as boolean),
      'expectations.pollNow': () => model.polledNow(first),
      'expectations.settlePoll': () => this.#settledPoll(first, result as SettledPoll),
      'expectations.claimPolls': () =>
        model.claimed(result as ClaimedPoll[], (first as { leaseMs: number }).leaseMs),
      'expectations.releasePolls': () => model.released(first),
    };
    await observers[operation]?.();
  }

  async #settledPoll(settlement: PollSettlement, result: SettledPoll): Promise<void> {
    const { event } = settlement;
    const { receipt } = result;
    if (event !== null && receipt !== null) await this.#model.received([event], [receipt]);
    this.#expectations.settled(settlement, result);
  }

  async #observeExactly(
    operation: StoreOperation,
    [first, second]: readonly unknown[],
    outcome: { readonly result: unknown } | { readonly error: unknown },
  ): Promise<void> {
    const model = this.#model;
    if (operation === 'commit') {
      const lost = 'error' in outcome && (outcome.error as { code?: string }).code === 'lease_lost';
      if ('result' in outcome) model.settled(first as Lease, 'commit', { settled: true });
      else if (lost) model.settled(first as Lease, 'commit', { settled: false });
      return;
    }
    if ('error' in outcome) return;
    const { result } = outcome;
    const observers: Observers = {
      receive: async () => {
        await model.received(first as IncomingEvent[], result as StoreReceipt[]);
        this.#expectations.received(first as IncomingEvent[], result as StoreReceipt[]);
      },
      claim: () => model.claimed((first as ClaimRequest).workerId, result as ClaimedDelivery[]),
      claimSuspect: () => {
        if (result === null) return;
        model.claimed((first as SuspectRequest).workerId, [result as ClaimedDelivery]);
      },
      complete: () => model.settled(first as Lease, 'complete', result as SettleResult),
      release: () => model.settled(first as Lease, 'release', result as SettleResult),
      fail: () => {
        const failure = second as { readonly retryInMs: number | null; readonly error: string };
        model.settled(first as Lease, failure, result as SettleResult);
      },
      redrive: async () => {
        const { force, fulfils } = second as { force: boolean; fulfils: readonly string[] };
        const by = force ? 'redrive by force' : 'redrive';
        const redriven = await model.operated(first as DeliverySelection[], by);
        for (const event of redriven) this.#expectations.redriven(event, fulfils);
      },
      skip: async () => void (await model.operated(first as DeliverySelection[], 'skip')),
    };
    await observers[operation]?.();
  }
}

/** A value as text for one line of a trace, without bodies. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value, (key, one: unknown) => (key === 'raw' ? undefined : one));
  return text === undefined ? 'nothing' : text.slice(0, 600);
}
