import type { EngineAccess } from 'test-postgres/engines/create-engine-adapter';
import type { StoreKind } from './fault-plan.js';

/** How an application process starts: the argument of its command line, as JSON. */
export interface ApplicationSetup {
  readonly store: StoreKind;
  /** Path of the SQLite file, or connection string of the PostgreSQL database. */
  readonly database: string;
  /** The second version has one more handler. */
  readonly version: 1 | 2;
  /** File that the process appends its journal to. */
  readonly journal: string;
  readonly webhookSecret: string;
  /** Address of the payments service. */
  readonly serviceUrl: string;
  readonly leaseMs: number;
  readonly drainMs: number;
  /** `null` if the process handles the events that it receives. */
  readonly engine: EngineAccess | null;
}

/** Messages from the chaos runner to an application process. */
export type ToApplication =
  /** Moves the wall clock. */
  | { readonly type: 'clock'; readonly offsetMs: number }
  /** Blocks the event loop. */
  | { readonly type: 'block'; readonly ms: number }
  /** Lets waiting handlers continue. Handlers that start later do not wait. */
  | { readonly type: 'proceed' }
  /** Requests the number of deliveries that are pending or running. */
  | { readonly type: 'unfinished'; readonly request: number }
  /** Requests all events of the inbox. */
  | { readonly type: 'report'; readonly request: number }
  /** Requests all expectations. */
  | { readonly type: 'expectations'; readonly request: number }
  /** Polls all waiting and overdue expectations now. */
  | { readonly type: 'sweep'; readonly request: number }
  /** Polls all fulfilled expectations now. */
  | { readonly type: 'ask'; readonly request: number };

/** A request that an application process responds to. */
export type ApplicationRequest = Extract<ToApplication, { request: number }>['type'];

/** Messages from an application process to the chaos runner. */
export type FromApplication =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'response'; readonly request: number; readonly value: unknown }
  | { readonly type: 'error'; readonly request: number; readonly error: string };

/**
 * One line of a process's journal, as JSON. The process writes the line before it continues, so that the line survives
 * SIGKILL. Times are milliseconds of the machine's monotonic clock, which all processes share. `attempt` identifies one
 * execution of a handler; `number` counts the attempts of a delivery from 1.
 */
export type JournalEntry =
  | {
      readonly kind: 'attempt-started';
      readonly at: number;
      readonly attempt: string;
      readonly handler: string;
      readonly event: string;
      readonly transaction: string;
      readonly number: number;
    }
  /**
   * The last moment before the attempt's transaction can commit. The next attempt of the key may begin right after this
   * moment.
   */
  | { readonly kind: 'effect-written'; readonly at: number; readonly attempt: string }
  | {
      readonly kind: 'attempt-ended';
      readonly at: number;
      readonly attempt: string;
      readonly error: string | null;
    }
  /** The module aborted the signal of the attempt. */
  | {
      readonly kind: 'attempt-aborted';
      readonly at: number;
      readonly attempt: string;
      readonly reason: string;
    }
  /** The handler kills its own process. */
  | { readonly kind: 'process-killed'; readonly at: number; readonly attempt: string }
  /**
   * A call to the store began. The call registers a worker, sends its heartbeat or retires the worker. If no
   * `heartbeat-ended` or `worker-retired` has the same time, the process ended before the store responded.
   */
  | { readonly kind: 'heartbeat-started'; readonly at: number }
  /** A registration or a heartbeat ended. `alive` is `null` if the call failed. */
  | {
      readonly kind: 'heartbeat-ended';
      readonly at: number;
      readonly end: number;
      readonly worker: string;
      readonly alive: boolean | null;
    }
  /** The store has stored a registration of this process. */
  | { readonly kind: 'worker-registered'; readonly at: number; readonly end: number }
  /** The store has retired the worker. The worker keeps its deliveries for a grace period, without heartbeats. */
  | { readonly kind: 'worker-retired'; readonly at: number; readonly worker: string }
  /** The process claimed a suspect: a delivery that ran when another process died. */
  | {
      readonly kind: 'claimed-suspect';
      readonly at: number;
      readonly event: string;
      readonly handler: string;
    }
  /** The event loop was blocked. */
  | { readonly kind: 'event-loop-blocked'; readonly at: number; readonly end: number };

/** An expectation as the inbox stores it. */
export interface ReportedExpectation {
  readonly reference: string;
  readonly state: string;
  /** The source and the type of the event that fulfilled the expectation; `null` if it is not fulfilled. */
  readonly fulfilledBy: string | null;
  readonly eventType: string | null;
  readonly contradiction: string | null;
  readonly polls: number;
}

/** An event as the inbox stores it at the end of the chaos run. */
export interface ReportedEvent {
  readonly id: string;
  readonly repeats: readonly string[];
  readonly deliveries: readonly {
    readonly handler: string;
    readonly state: string;
    readonly attempts: number;
    readonly history: readonly { readonly outcome: string; readonly error: string | null }[];
  }[];
}

/** Milliseconds of the machine's monotonic clock, which is the same in all processes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}
