import type { StoreKind } from './fault-plan.js';

/** How an application of the run starts: the argument of its process, as JSON. */
export interface ApplicationSetup {
  readonly store: StoreKind;
  /** Database file, or connection string. */
  readonly where: string;
  /** The second version has one handler more. */
  readonly version: 1 | 2;
  /** File that the process appends its journal to. */
  readonly journal: string;
  readonly webhookSecret: string;
  readonly leaseMs: number;
  readonly drainMs: number;
}

/** From the run to a process. */
export type ToApplication =
  | { readonly type: 'clock'; readonly offsetMs: number }
  | { readonly type: 'block'; readonly ms: number }
  /** Ends the waits of handlers, those to come included. */
  | { readonly type: 'proceed' }
  | { readonly type: 'unfinished'; readonly request: number }
  | { readonly type: 'report'; readonly request: number };

/** From a process to the run. */
export type FromApplication =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'answer'; readonly request: number; readonly value: unknown }
  | { readonly type: 'failed'; readonly request: number; readonly error: string };

/**
 * What a process did, a line of JSON each. It is written before the process goes on, so that it survives SIGKILL. Times
 * are milliseconds of the machine's monotonic clock, which all processes share.
 */
export type JournalEntry =
  | {
      readonly kind: 'start';
      readonly at: number;
      readonly run: string;
      readonly handler: string;
      readonly event: string;
      readonly transaction: string;
      readonly attempt: number;
    }
  /** The last moment before the run's transaction can commit. Another run of the key may begin right after it. */
  | { readonly kind: 'worked'; readonly at: number; readonly run: string }
  | {
      readonly kind: 'end';
      readonly at: number;
      readonly run: string;
      readonly error: string | null;
    }
  /** The run's signal was aborted. */
  | { readonly kind: 'abort'; readonly at: number; readonly run: string; readonly reason: string }
  /** The run kills its process. */
  | { readonly kind: 'die'; readonly at: number; readonly run: string }
  /** A registration or a heartbeat began. Without a `beat` of the same time, the process ended before the answer. */
  | { readonly kind: 'sent'; readonly at: number }
  /** A registration or a heartbeat that the store answered, or did not (`alive: null`). */
  | {
      readonly kind: 'beat';
      readonly at: number;
      readonly end: number;
      readonly worker: string;
      readonly alive: boolean | null;
    }
  /** The store has stored a registration of this process. */
  | { readonly kind: 'registered'; readonly at: number; readonly end: number }
  /** The store has stored that the worker retired. It keeps its deliveries for a while, without heartbeats. */
  | { readonly kind: 'retired'; readonly at: number; readonly worker: string }
  /** A suspect was claimed to run alone. */
  | {
      readonly kind: 'alone';
      readonly at: number;
      readonly event: string;
      readonly handler: string;
    }
  /** The event loop stood still. */
  | { readonly kind: 'gap'; readonly at: number; readonly end: number };

/** An event as the inbox has it at the end. */
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

/** Milliseconds of the machine's monotonic clock: the same in each process. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}
