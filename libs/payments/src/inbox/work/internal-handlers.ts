import { Injectable } from '@nestjs/common';
import { LogLine } from '../../errors/log-line.js';
import type { HandlerOptions } from '../../events/handler-registry.js';
import type { ClaimedDelivery, HandlerDeclaration } from '../store/inbox-store.js';
import { describeWithStack } from './settle-attempt.js';
import type { EndedAttempt, HandlerFailure, SettleAction } from './settle-attempt.js';

/**
 * A handler of the module itself. Workers lease, free, drain and pause its deliveries as they do with all deliveries,
 * but it reads no event, its attempts are never charged, and its deliveries never become dead letters.
 */
export interface InternalHandler extends HandlerDeclaration {
  readonly options: HandlerOptions;
  /**
   * Runs one delivery. Resolves with how to settle it. If it rejects, or takes longer than its `timeoutMs`, the worker
   * releases the delivery: see {@link releaseAfter}.
   */
  run(delivery: ClaimedDelivery, signal: AbortSignal): Promise<SettleAction>;
}

/** How long the worker waits until it runs a delivery again whose internal handler failed, in milliseconds. */
const RETRY_MS = 60_000;

/** How to settle a delivery whose internal handler failed: it is due again in 60 s, or now if the application closes. */
export function releaseAfter(
  { thrown }: HandlerFailure,
  { delivery, name, closing, services }: EndedAttempt,
): SettleAction {
  const dueInMs = closing ? 0 : RETRY_MS;
  return {
    outcome: 'released',
    write: (store) => store.release(delivery, dueInMs),
    retryInMs: closing ? null : RETRY_MS,
    keepSlotMs: 0,
    log: () => {
      if (closing) return;
      const line = `Delivery ${name} failed, and runs again in ${RETRY_MS} ms. ${describeWithStack(thrown)}`;
      services.throttled.warn(`internal ${delivery.handler}`, new LogLine(line, delivery));
    },
  };
}

/** The handlers of the module itself, by name. */
@Injectable()
export class InternalHandlers {
  readonly #handlers = new Map<string, InternalHandler>();

  /** Call it before the worker starts. */
  add(handler: InternalHandler): void {
    this.#handlers.set(handler.name, handler);
  }

  get(name: string): InternalHandler | undefined {
    return this.#handlers.get(name);
  }

  all(): InternalHandler[] {
    return [...this.#handlers.values()];
  }
}
