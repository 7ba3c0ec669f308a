import { Inject, Injectable } from '@nestjs/common';
import { withTimeLimit } from '../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { EngineStatus, EventRelay, MessageSource } from './engine.js';
import { MESSAGE_SOURCE } from './event-consumer.js';
import { EVENT_RELAY } from './event-relay.js';

/**
 * The time limit for the answer of an engine, in milliseconds. Shorter than the time limit of common metric readers.
 */
const ANSWER_MS = 1000;

/** The state of the engine, for metrics and health. */
export interface EngineState extends EngineStatus {
  /** Whether the engine has answered within a second. */
  readonly connected: boolean;
}

/** Reads the state of the engine of the option `relay` or `source`. */
@Injectable()
export class EngineMonitor {
  /** Simultaneous callers share one read, so that reads do not pile up if the engine hangs. */
  #reading: Promise<EngineStatus> | null = null;

  constructor(
    @Inject(EVENT_RELAY) private readonly relay: EventRelay | null,
    @Inject(MESSAGE_SOURCE) private readonly source: MessageSource | null,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  /** Returns `null` without an engine, and for an adapter without `status`. Never rejects. */
  async state(): Promise<EngineState | null> {
    const engine = this.source ?? this.relay;
    if (engine?.status === undefined) return null;
    try {
      this.#reading ??= engine.status().finally(() => (this.#reading = null));
      return { connected: true, ...(await withTimeLimit(this.#reading, ANSWER_MS, this.runtime)) };
    } catch {
      return { connected: false };
    }
  }
}
