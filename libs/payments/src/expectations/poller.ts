import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger } from '../errors/module-log.js';
import { POLL_HANDLER } from '../inbox/store/expectation-store.js';
import type { ClaimedPoll } from '../inbox/store/expectation-store.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { HandlerDeclaration, InboxStore } from '../inbox/store/inbox-store.js';
import { ClaimLoop } from '../inbox/work/claim-loop.js';
import { InboxWorker } from '../inbox/work/inbox-worker.js';
import type { InboxCompanion } from '../inbox/work/inbox-worker.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { PollLimits } from './poll-schedule.js';
import { POLL_LEASE_MS, Polls } from './poll.js';
import { RECONCILE_OPTIONS } from './reconcile-options.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** Polls of all companies that run in this process at most. */
const MAX_RUNNING = 500;
/** Polls that one claim leases at most: few enough that no receive waits for the claim. */
const BATCH = 10;
/** The time between two claims of polls that are all postponed, in milliseconds, in which the store serves receives. */
const PACE_MS = 5;
/** How long a suspect waits for the suspect that runs, in milliseconds. */
const SUSPECT_MS = 1000;

/**
 * Claims the polls that are due, and runs them, limited for each company. A poll that a process did not end is a suspect:
 * suspects run one at a time in each process, so that a poll that ends its process takes few others with it.
 */
@Injectable()
export class Poller implements InboxCompanion {
  readonly #running = new Map<ClaimedPoll, AbortController>();
  readonly #loop: ClaimLoop;
  #limits: PollLimits | null = null;
  #suspectRuns = false;
  #onEnded: () => void = () => {};

  constructor(
    @Inject(RECONCILE_OPTIONS) private readonly options: ResolvedReconcileOptions | null,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly worker: InboxWorker,
    private readonly polls: Polls,
  ) {
    this.#loop = new ClaimLoop({
      runtime,
      logger: new ModuleLogger('PaymentExpectations'),
      active: () => worker.active,
      claim: () => this.#claim(),
      nextDueInMs: () => store.expectations.nextPollInMs(),
      onDue: () => {},
      onNothingDue: () => worker.companionIdle(),
    });
  }

  /** Joins the worker, if the option `reconcile` is set. Call it before the worker starts. */
  register(): void {
    if (this.options === null) return;
    this.#limits = new PollLimits(this.options, this.runtime);
    this.worker.join(this);
  }

  get declaration(): HandlerDeclaration {
    return { name: POLL_HANDLER, patterns: this.options!.eventTypes };
  }

  get idle(): boolean {
    return this.#running.size === 0 && !this.#loop.busy;
  }

  start(): void {
    this.#loop.claimSoon();
  }

  wake(): void {
    this.#loop.claimSoon();
  }

  /** Claims in `ms` milliseconds, because a poll becomes due then. */
  wakeIn(ms: number): void {
    if (this.#limits !== null) this.#loop.wakeIn(ms);
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#onEnded = resolve));
  }

  abandon(): void {
    for (const abort of this.#running.values()) abort.abort();
  }

  async #claim(): Promise<boolean> {
    const limit = Math.min(BATCH, MAX_RUNNING - this.#running.size);
    if (limit <= 0 || !this.worker.active) return false;
    const { expectations } = this.store;
    const claimed = await expectations.claimPolls({ limit, leaseMs: POLL_LEASE_MS });
    const waits = claimed.map((poll) => this.#admit(poll));
    const postponed = claimed.filter((_, index) => waits[index]! > 0);
    for (const [index, poll] of claimed.entries()) if (waits[index] === 0) void this.#run(poll);
    const dueInMs = waits.filter((ms) => ms > 0);
    if (postponed.length > 0) await expectations.releasePolls(postponed, dueInMs);
    if (claimed.length < limit) return false;
    if (postponed.length < limit) return true;
    this.#loop.wakeIn(PACE_MS);
    return false;
  }

  /** Returns 0 if the poll may run now, and otherwise in how many milliseconds to try again. */
  #admit({ expectation: { company, lostPolls } }: ClaimedPoll): number {
    const isSuspect = lostPolls > 0;
    if (isSuspect && this.#suspectRuns) return SUSPECT_MS;
    const waitMs = this.#limits!.admit(company);
    if (isSuspect && waitMs === 0) this.#suspectRuns = true;
    return waitMs;
  }

  async #run(poll: ClaimedPoll): Promise<void> {
    const { company, lostPolls } = poll.expectation;
    const abort = new AbortController();
    this.#running.set(poll, abort);
    const wasFull = () => this.#running.size >= MAX_RUNNING;
    const { nextPollInMs, refusedMs } = await this.polls.run(poll, this.options!, abort.signal);
    const claimAgain = wasFull();
    this.#running.delete(poll);
    this.#limits!.ended(company);
    if (refusedMs > 0) this.#limits!.refuse(company, refusedMs);
    if (lostPolls > 0) this.#suspectRuns = false;
    if (nextPollInMs !== null) this.#loop.wakeIn(nextPollInMs);
    if (claimAgain) this.#loop.claimSoon();
    if (this.#running.size > 0) return;
    this.#onEnded();
    this.worker.companionIdle();
  }
}
