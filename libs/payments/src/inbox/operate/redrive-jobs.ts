import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { describeError } from '../../errors/payments-error.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import type { InboxStore, StoredDelivery, StoredRecord } from '../store/inbox-store.js';
import { parsedBody } from '../store/shared-records.js';
import { MAX_WHO } from '../store/stored-event.js';
import { InboxWorker } from '../work/inbox-worker.js';
import { WORKER_OPTIONS } from '../work/worker-options.js';
import type { ResolvedWorkerOptions } from '../work/worker-options.js';
import { filterOf, InboxRedrive, PAGE } from './inbox-redrive.js';
import type { RedrivePlan, RedriveQuery, SelectedPage, SelectionResult } from './inbox-redrive.js';

/** Options of `PaymentInbox.startRedrive()`. */
export interface RedriveJobOptions {
  /** How many events become due per second: more than 0, at most 1,000. Default 100. */
  readonly ratePerSecond?: number;
  /** Name of the person who starts the redrive, for other operators: at most 200 characters. Default `null`. */
  readonly startedBy?: string | null;
}

/** A redrive that continues after a restart, with its progress; see `PaymentInbox.startRedrive()`. */
export interface RedriveJob extends SelectionResult, Required<RedriveJobOptions> {
  readonly id: string;
  /** The query of the job. If the caller set no `to`, `to` is the start of the job. */
  readonly query: RedriveQuery;
  /** When the job was started, by the store clock. The job ignores deliveries that were attempted after its start. */
  readonly startedAt: Date;
  /** When a process worked on the job last, or when the job ended. */
  readonly changedAt: Date;
  /**
   * - `running`: a process works on the job, or a process with a worker will continue the job.
   * - `done`: all events were redriven. Deliveries of these events may still be pending or running.
   * - `stopped`: an operator stopped the job.
   * - `failed`: the job cannot continue; see {@link error}.
   */
  readonly state: 'running' | 'done' | 'stopped' | 'failed';
  /** The number of events and deliveries that matched when the job was started. */
  readonly total: SelectionResult;
  /** The number of redriven deliveries that failed again within about 5 seconds after they became due. */
  readonly failed: number;
  /** Why the job failed; `null` in other states. */
  readonly error: string | null;
}

/** The body of the shared record of a job. */
interface JobBody extends Omit<RedriveJob, 'id' | 'changedAt'> {
  /** The process that works on the job; `null` if there is none. */
  readonly owner: string | null;
  /** If the record has not changed for this time, the owner has died or hangs, and another process continues the job. */
  readonly leaseMs: number;
  /** The job has redriven the matching events up to this cursor. */
  readonly after: string | null;
  /** Whether the job has to read events after the cursor. */
  readonly more: boolean;
}

/**
 * The body of a job that no process has worked on yet. The record of such a job has not changed since the start of the
 * job, so the time of its last change is the start of the job.
 */
type NewJob = Omit<JobBody, 'startedAt'>;

interface StoredJob {
  readonly version: number;
  readonly body: JobBody;
}

/** Redriven deliveries, and the time on the monotonic clock at which their first attempt is checked. */
interface Check {
  readonly at: number;
  readonly selected: SelectedPage['selected'];
}

/** The failures of a batch are counted this many milliseconds after the last event of the batch became due. */
const CHECK_MS = 5000;
/**
 * Maximum number of jobs that are listed, and of running jobs that a process looks through for work. If there are more
 * jobs, only those that changed last are used.
 */
const MAX_JOBS = 100;
/** The body of every running job contains this text, and no other body does. */
const RUNNING = '"state":"running"';
/**
 * How long a closing process may take to hand over its jobs, in milliseconds. If this takes longer, other processes
 * continue the jobs only after `leaseMs`.
 */
const CLOSE_MS = 5000;
const DEFAULT_RATE = 100;
const MAX_RATE = 1000;
/** Maximum length of a query as JSON, in characters, because the record of a job contains its query. */
const MAX_QUERY = 20_000;

/**
 * Runs redrives that are stored as shared records. Each process with a worker looks for jobs after its heartbeats. Only
 * one process at a time works on a job, because a process can change the record only if the stored version is the
 * version that this process wrote last. If a process dies after a batch but before it stores the progress, the next
 * process redrives this batch again. This repetition changes nothing, because pending deliveries keep their due time,
 * and the job ignores deliveries that were attempted since its start.
 */
@Injectable()
export class RedriveJobs {
  /** The name of this process in the records of jobs. */
  readonly #owner = randomUUID();
  readonly #failures: ThrottledLog;
  readonly #running = new Map<string, Promise<void>>();
  readonly #sleepers = new Set<() => void>();
  /** A job, its timers and its log lines do not inherit the `AsyncLocalStorage` of the request that starts it. */
  readonly #outsideRequests: <R>(work: () => R) => R = AsyncLocalStorage.snapshot();

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly redrive: InboxRedrive,
    private readonly worker: InboxWorker,
  ) {
    this.#failures = new ThrottledLog(new ModuleLogger('PaymentInbox'), runtime);
    worker.onHeartbeat(() => void this.#continue());
  }

  /** See `PaymentInbox.startRedrive()`. */
  async start(query: RedriveQuery, options: RedriveJobOptions): Promise<RedriveJob> {
    const { ratePerSecond = DEFAULT_RATE, startedBy = null } = options;
    if (!(typeof ratePerSecond === 'number' && ratePerSecond > 0 && ratePerSecond <= MAX_RATE)) {
      throw new TypeError(
        '"ratePerSecond" must be a number of events per second above 0, at most 1,000.',
      );
    }
    const { handlers, error, force } = query;
    const stored: RedriveQuery = {
      ...filterOf(query),
      ...(handlers !== undefined && { handlers }),
      ...(error !== undefined && { error }),
      ...(force !== undefined && { force }),
    };
    if (JSON.stringify(stored).length > MAX_QUERY) {
      throw new TypeError(
        `The query must have at most ${MAX_QUERY} characters as JSON. Redrive many "ids" in several parts, or with redrive().`,
      );
    }
    const body: NewJob = {
      query: stored,
      ratePerSecond,
      startedBy: startedBy?.slice(0, MAX_WHO) ?? null,
      state: 'running',
      total: await this.redrive.redrive({ ...stored, dryRun: true }),
      events: 0,
      deliveries: 0,
      failed: 0,
      error: null,
      owner: null,
      leaseMs: this.options.leaseMs,
      after: null,
      more: true,
    };
    const id = randomUUID();
    await this.#put(id, body, 0);
    const job = (await this.#find(id))!;
    // If another process has already started to work on the job, the version of its record is not 1 any more.
    this.#outsideRequests(() => this.#take(id, { ...job, version: 1 }));
    return toJob(id, job.body, job.body.startedAt);
  }

  async list(): Promise<RedriveJob[]> {
    const records = await this.store.records.list('job', MAX_JOBS);
    return records
      .flatMap((record) => {
        const body = bodyOf(record);
        return body === undefined ? [] : [toJob(record.key, body, record.changedAt)];
      })
      .toSorted((a, b) => +b.startedAt - +a.startedAt);
  }

  /** See `PaymentInbox.stopRedrive()`. */
  async stop(id: string): Promise<boolean> {
    for (;;) {
      const found = await this.#find(id, RUNNING);
      if (found?.body.state !== 'running') return false;
      // The process that works on the job may change the record at the same time.
      const body: JobBody = { ...found.body, state: 'stopped' };
      if ((await this.#put(id, body, found.version)) !== null) return true;
    }
  }

  /**
   * Hands the jobs of this process over to other processes. Call this method when the worker is not active any more.
   * Never rejects.
   */
  async close(): Promise<void> {
    for (const wake of this.#sleepers) wake();
    const ended = Promise.all(this.#running.values());
    await withTimeLimit(ended, CLOSE_MS, this.runtime).catch(() => undefined);
  }

  /** Continues the running jobs that no live process works on. */
  async #continue(): Promise<void> {
    try {
      for (const record of await this.store.records.list('job', MAX_JOBS, RUNNING)) {
        const body = bodyOf(record);
        if (body === undefined) continue;
        const isFree =
          body.owner === null || body.owner === this.#owner || record.ageMs > body.leaseMs;
        if (body.state === 'running' && isFree) this.#take(record.key, { ...record, body });
      }
    } catch (error) {
      this.#warn(error);
    }
  }

  #take(id: string, job: StoredJob): void {
    if (this.#running.has(id) || !this.worker.active) return;
    const run = this.#run(id, job)
      .catch((error: unknown) => this.#warn(error))
      .finally(() => this.#running.delete(id));
    this.#running.set(id, run);
  }

  #warn(error: unknown): void {
    this.#failures.warn(
      'redrive',
      `A redrive was interrupted. It continues after the next successful heartbeat. Cause: ${describeError(error)}`,
    );
  }

  /**
   * Works on a job until the job is done or has failed, an operator stops it, another process continues it, or this
   * process closes.
   */
  async #run(id: string, job: StoredJob): Promise<void> {
    const { leaseMs } = this.options;
    let body: JobBody = { ...job.body, owner: this.#owner, leaseMs };
    const taken = await this.#put(id, body, job.version);
    if (taken === null) return;
    let version = taken;
    let plan: RedrivePlan;
    try {
      plan = await this.redrive.plan(body.query, body.startedAt);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      body = { ...body, owner: null, state: 'failed', error: error.message };
      await this.#store(id, body, version);
      return;
    }
    const spacingMs = 1000 / body.ratePerSecond;
    // A batch takes about a second, so that a stop has an effect soon.
    const limit = Math.min(PAGE, Math.ceil(body.ratePerSecond));
    const checks: Check[] = [];
    let nextAt = this.runtime.monotonic();
    let storedAt = nextAt;
    // After an operator has stopped the job, only the checks of the last batches are left to do.
    const hasBatch = (): boolean => body.more && body.state === 'running';
    while (hasBatch() || checks.length > 0) {
      const wakeAt = hasBatch() ? nextAt : checks[0]!.at;
      await this.#sleep(Math.min(wakeAt, storedAt + leaseMs / 4) - this.runtime.monotonic());
      if (!this.worker.active) break;
      let changes = false;
      if (hasBatch() && this.runtime.monotonic() >= nextAt) {
        const batchAt = this.runtime.monotonic();
        const page = await this.redrive.page(plan, body.after, limit, spacingMs);
        this.redrive.report(plan, page);
        this.worker.wake([...new Set(page.selected.flatMap(({ handlers }) => handlers))]);
        const { events, deliveries } = body;
        body = {
          ...body,
          events: events + page.events,
          deliveries: deliveries + page.deliveries,
          after: page.next ?? body.after,
          more: page.next !== null,
        };
        nextAt = batchAt + page.events * spacingMs;
        changes = page.events > 0;
        if (changes) checks.push({ at: nextAt + CHECK_MS, selected: page.selected });
      }
      while (checks.length > 0 && checks[0]!.at <= this.runtime.monotonic()) {
        body = { ...body, failed: body.failed + (await this.#failedAgain(checks.shift()!)) };
      }
      if (!changes && this.runtime.monotonic() < storedAt + leaseMs / 4) continue;
      storedAt = this.runtime.monotonic();
      const stored = await this.#store(id, body, version);
      if (stored === null) return;
      ({ body, version } = stored);
    }
    const isDone = body.state === 'running' && !body.more && checks.length === 0;
    await this.#store(id, { ...body, owner: null, ...(isDone && { state: 'done' }) }, version);
  }

  /**
   * Stores the progress, even if an operator has stopped the job. Returns the stored job, or `null` if another process
   * works on it.
   */
  async #store(id: string, body: JobBody, version: number): Promise<StoredJob | null> {
    const stored = await this.#put(id, body, version);
    if (stored !== null) return { version: stored, body };
    const found = await this.#find(id);
    if (found?.body.state !== 'stopped' || found.body.owner !== this.#owner) return null;
    return this.#store(id, { ...body, state: 'stopped' }, found.version);
  }

  /** Counts the deliveries of a batch that had a failed attempt since they were redriven. */
  async #failedAgain({ selected }: Check): Promise<number> {
    let failed = 0;
    for (const [company, events] of Map.groupBy(selected, ({ event }) => event.company)) {
      const ids = events.map(({ event }) => event.id);
      const query = {
        filter: { company, ids },
        order: 'oldest',
        limit: PAGE,
        after: null,
      } as const;
      const current = new Map((await this.store.list(query)).events.map((one) => [one.id, one]));
      for (const { event, handlers } of events) {
        const isSelected = ({ handler }: StoredDelivery) => handlers.includes(handler);
        const before = event.deliveries.filter(({ state }) => state === 'pending');
        failed += (current.get(event.id)?.deliveries ?? [])
          .filter(isSelected)
          .filter((delivery) => hasFailed(delivery, before)).length;
      }
    }
    return failed;
  }

  async #find(id: string, containing?: string): Promise<StoredJob | undefined> {
    const records = await this.store.records.list('job', MAX_JOBS, containing);
    const record = records.find(({ key }) => key === id);
    const body = record && bodyOf(record);
    return body && { version: record.version, body };
  }

  #put(id: string, body: NewJob, ifVersion: number): Promise<number | null> {
    const record = { kind: 'job', key: id, body: JSON.stringify(body), ifVersion } as const;
    return this.store.records.put(record);
  }

  /**
   * Waits `ms` milliseconds. If `ms` is not above 0, or if this process closes, only lets the event loop run other
   * work.
   */
  #sleep(ms: number): Promise<void> {
    if (ms <= 0 || !this.worker.active) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        this.#sleepers.delete(wake);
        resolve();
      };
      const cancel = this.runtime.schedule(ms, wake);
      this.#sleepers.add(wake);
    });
  }
}

/**
 * @param pending the deliveries that were pending before the redrive, which therefore did not reset their number of
 *   attempts
 */
function hasFailed(
  { handler, state, attempts }: StoredDelivery,
  pending: readonly StoredDelivery[],
): boolean {
  const before = pending.find((one) => one.handler === handler)?.attempts ?? 0;
  const ended = attempts - (state === 'running' ? 1 : 0);
  return state !== 'done' && state !== 'skipped' && ended > before;
}

/** Returns `undefined` for a record that cannot be read, so that such a record does not stop other jobs. */
function bodyOf(record: StoredRecord): JobBody | undefined {
  const stored = parsedBody(record) as (NewJob & Partial<JobBody>) | undefined;
  if (stored?.query === undefined) return undefined;
  const { query, ...rest } = stored;
  const startedAt = new Date(stored.startedAt ?? record.changedAt);
  // By default, the job includes the events that were received in the millisecond of its start.
  const { from, to = +startedAt + 1 } = query;
  const times = { ...(from && { from: new Date(from) }), to: new Date(to) };
  return { ...rest, query: { ...query, ...times }, startedAt };
}

function toJob(
  id: string,
  { owner: _owner, leaseMs: _leaseMs, after: _after, more: _more, ...job }: JobBody,
  changedAt: Date,
): RedriveJob {
  return { id, changedAt, ...job };
}
