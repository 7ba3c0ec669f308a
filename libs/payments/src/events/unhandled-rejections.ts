import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger } from '@nestjs/common';
import { LogLine } from '../errors/log-line.js';
import { describeError, framesOf } from '../errors/payments-error.js';

/** The attempt that started the rejected promise. */
interface Attempt {
  readonly handler: string;
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
}

/** Key that marks listeners of this package, including those of other applications and other copies in this process. */
const OURS = Symbol.for('nestjs-payments:unhandled-rejection');

interface Listener {
  (reason: unknown): void;
  [OURS]: {
    /** Whether a handler or observer of this listener's application started the rejected promise. */
    owns(): boolean;
    /** Removes the listener until the next turn of the event loop. */
    pause(): void;
  };
}

/**
 * Logs the rejection of a promise that a handler or an observer started and did not await, with the handler's name. By
 * default, Node would exit on it, which would interrupt every other attempt in the process.
 *
 * Any other rejection has the same effect as without this class: other listeners receive it. If there are none, Node
 * follows its flag `--unhandled-rejections`.
 */
@Injectable()
export class UnhandledRejections {
  readonly #logger = new Logger('PaymentHandlers');
  /** What to do with a rejection, by the async context in which its promise was started. */
  readonly #guards = new AsyncLocalStorage<(reason: unknown) => void>();
  #open = false;
  readonly #listener: Listener = Object.assign((reason: unknown) => this.#onRejection(reason), {
    [OURS]: {
      owns: () => this.#guards.getStore() !== undefined,
      pause: () => {
        process.off('unhandledRejection', this.#listener);
        setImmediate(() => this.#open && process.on('unhandledRejection', this.#listener));
      },
    },
  });

  /** Starts listening, until {@link close}. */
  open(): void {
    this.#open = true;
    process.on('unhandledRejection', this.#listener);
  }

  close(): void {
    this.#open = false;
    process.off('unhandledRejection', this.#listener);
  }

  /** Runs the handler in an async context that identifies its unhandled rejections. */
  watch<T>(attempt: Attempt, work: () => Promise<T>): Promise<T> {
    return this.guard((reason) => this.#log(attempt, reason), work);
  }

  /** Runs work in an async context. Calls `onRejection` with the rejections of its promises that nothing handles. */
  guard<T>(onRejection: (reason: unknown) => void, work: () => T): T {
    return this.#guards.run(onRejection, work);
  }

  #log(attempt: Attempt, reason: unknown): void {
    this.#logger.error(
      new LogLine(
        `Handler ${attempt.handler} (company ${attempt.company}) did not await a promise, which rejected: ` +
          `${describeError(reason)}. The outcome of its attempt ignores this error: await the promise.${framesOf(reason)}`,
        attempt,
      ),
    );
  }

  #onRejection(reason: unknown): void {
    const onRejection = this.#guards.getStore();
    if (onRejection !== undefined) return onRejection(reason);
    const listeners: unknown[] = process.listeners('unhandledRejection');
    const ours = listeners.filter(isOurs);
    if (ours.length < listeners.length || ours.some((listener) => listener[OURS].owns())) return;
    // No handler or observer of any application started the promise, and there is no other listener. Only the listener that was added
    // last returns the rejection to Node, so that Node handles it once.
    if (ours.at(-1) === this.#listener) returnToNode(ours, reason);
  }
}

function isOurs(listener: unknown): listener is Listener {
  return typeof listener === 'function' && OURS in listener;
}

/** The values of `--unhandled-rejections` for which Node acts in the same way with and without listeners. */
const LISTENERS_IGNORED = /--unhandled-rejections[= ](none|strict|warn)\b(?!-)/;

/** Rejects a promise with `reason` while these listeners are removed, so that Node applies its default. */
function returnToNode(ours: readonly Listener[], reason: unknown): void {
  if (LISTENERS_IGNORED.test([...process.execArgv, process.env['NODE_OPTIONS']].join(' '))) return;
  for (const listener of ours) listener[OURS].pause();
  void Promise.reject(reason);
}
