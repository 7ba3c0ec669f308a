import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Inject, Injectable } from '@nestjs/common';
import { COMPANIES } from '../../companies/company.js';
import type { Companies } from '../../companies/company.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { VERSION } from '../../runtime/version.js';
import { NO_OBSERVERS, Observers } from '../../telemetry/observers.js';
import type { FactsSnapshot } from '../../telemetry/process-facts.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import type { InboxStore } from '../store/inbox-store.js';
import { parsedBody } from '../store/shared-records.js';
import { InboxWorker } from '../work/inbox-worker.js';
import type { HandlerLoad } from '../work/inbox-worker.js';

/** Milliseconds from the start of the process until its first report. */
const FIRST_MS = 1000;
const EVERY_MS = 10_000;
/**
 * A report that did not change is stored again after this many milliseconds, to show that the process is still running.
 */
const SIGN_OF_LIFE_MS = 30_000;
/** A process whose newest report is older than this many milliseconds is lost. */
const LOST_MS = 45_000;
/** A process reads the reports of the other processes once for every `INHERIT_EVERY` reports of its own. */
const INHERIT_EVERY = 30;
/** How long the last report of a closing process may take, in milliseconds. */
const LAST_REPORT_MS = 1000;
const MAX_PROCESSES = 200;

/** What a process stores about itself. */
export interface ProcessReport extends FactsSnapshot {
  /** Version of nestjs-payments. */
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  /** When the application started, by the process clock, in milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** When the application began to close; `null` while it runs. */
  readonly endedAtMs: number | null;
  /** The handlers that this process runs. */
  readonly handlers: readonly HandlerLoad[];
}

/**
 * What a process reported about itself within the last hour: its handlers, the webhook requests that it received, and
 * the results of its calls to the payments service. A report contains no secret, token or payload. All values can be
 * converted to JSON.
 */
export interface InboxProcess extends ProcessReport {
  readonly id: string;
  /**
   * Whether this is the process that returns the list. The values of this process are current; the values of other
   * processes are up to 10 s old.
   */
  readonly here: boolean;
  /**
   * `ended`: the application closed. `lost`: no report for 45 s, because the process died, is frozen or cannot reach the
   * store.
   */
  readonly state: 'running' | 'ended' | 'lost';
  /** Age of the newest report by the store clock, in milliseconds. */
  readonly seenMs: number;
}

/**
 * Stores a report of this process every ten seconds if something changed, otherwise every 30 s, so that any process can
 * show the reports of all processes. A webhook request causes no additional write for the report.
 */
@Injectable()
export class ProcessReports {
  /** Id of the process. Unlike the worker id, this id does not change if the store declares the worker dead. */
  readonly #id = randomUUID();
  /** `null` until the start. */
  #startedAtMs: number | null = null;
  #endedAtMs: number | null = null;
  #reports = 0;
  #stored = '';
  #storedAtMs = -Infinity;
  #report: Promise<void> = Promise.resolve();
  #cancel: () => void = () => {};

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(COMPANIES) private readonly companies: Companies,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly worker: InboxWorker,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {}

  start(): void {
    this.#startedAtMs = this.runtime.now();
    for (const id of this.companies.ids) {
      const company = this.companies.known(id);
      if (company) this.observers.facts.configured(company.id, company.signingKeys);
    }
    this.#next(FIRST_MS);
  }

  /** Stores the last report. Never rejects. */
  async stop(): Promise<void> {
    if (this.#startedAtMs === null) return;
    this.#cancel();
    this.#endedAtMs = this.runtime.now();
    const last = this.#report.then(() => this.#put());
    await withTimeLimit(last, LAST_REPORT_MS, this.runtime).catch(() => undefined);
  }

  /** See `PaymentInbox.processes()`. */
  async list(): Promise<InboxProcess[]> {
    const records = await this.store.records.list('process', MAX_PROCESSES);
    const others = records
      .filter(({ key }) => key !== this.#id)
      .flatMap(({ key: id, body, ageMs: seenMs }): InboxProcess[] => {
        const report = parsedBody({ body }) as ProcessReport | undefined;
        if (report === undefined) return [];
        const state = report.endedAtMs === null ? (seenMs > LOST_MS ? 'lost' : 'running') : 'ended';
        return [{ id, here: false, state, seenMs, ...report }];
      });
    const state = this.#endedAtMs === null ? 'running' : 'ended';
    return [{ id: this.#id, here: true, state, seenMs: 0, ...this.#current() }, ...others];
  }

  #next(ms: number): void {
    this.#cancel = this.runtime.schedule(ms, () => {
      this.#report = this.#try();
    });
  }

  async #try(): Promise<void> {
    try {
      if (this.#reports % INHERIT_EVERY === 0) {
        this.observers.facts.inherit((await this.list()).filter(({ here }) => !here));
      }
      this.#reports += 1;
      await this.#put();
    } catch {
      // The heartbeat of the worker logs that the store is down.
    }
    if (this.#endedAtMs === null) this.#next(EVERY_MS);
  }

  async #put(): Promise<void> {
    const body = JSON.stringify(this.#current());
    const now = this.runtime.monotonic();
    if (body === this.#stored && now - this.#storedAtMs < SIGN_OF_LIFE_MS) return;
    await this.store.records.put({ kind: 'process', key: this.#id, body });
    this.#stored = body;
    this.#storedAtMs = now;
  }

  #current(): ProcessReport {
    return {
      version: VERSION,
      host: hostname().slice(0, 100),
      pid: process.pid,
      startedAtMs: this.#startedAtMs ?? this.runtime.now(),
      endedAtMs: this.#endedAtMs,
      handlers: this.worker.load,
      ...this.observers.facts.snapshot(),
    };
  }
}
