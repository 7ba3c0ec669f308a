import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger } from '@nestjs/common';
import { describeError, framesOf } from '../errors/describe-error.js';

/** The run a stray rejection came from. */
interface Run {
  readonly handler: string;
  readonly company: string;
}

/** How the listeners of several applications, and of several copies of this package, know each other. */
const OURS = Symbol.for('nestjs-payments:unhandled-rejection');

interface Listener {
  (reason: unknown): void;
  [OURS]: {
    /** Whether the rejection being reported comes from a handler of this listener's application. */
    owns(): boolean;
    /** Stops listening until the event loop's next turn. */
    pause(): void;
  };
}

/**
 * Catches promises that a handler started, did not await and that failed: by Node's default one of them ends
 * the process, and every other payment under way with it. It is logged with the handler's name instead.
 *
 * A rejection from anywhere else keeps its consequence: other listeners see it as before, and where there is
 * none Node does with it what it was told to (`--unhandled-rejections`).
 */
@Injectable()
export class UnhandledRejections {
  readonly #logger = new Logger('PaymentHandlers');
  readonly #runs = new AsyncLocalStorage<Run>();
  #open = false;
  readonly #listener: Listener = Object.assign((reason: unknown) => this.#onRejection(reason), {
    [OURS]: {
      owns: () => this.#runs.getStore() !== undefined,
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

  /** Runs the handler so that what it leaves behind is known as its own. */
  watch<T>({ handler, company }: Run, work: () => Promise<T>): Promise<T> {
    return this.#runs.run({ handler, company }, work);
  }

  #onRejection(reason: unknown): void {
    const run = this.#runs.getStore();
    if (run !== undefined) {
      this.#logger.error(
        `Handler ${run.handler} (company ${run.company}) left a promise behind that failed: ` +
          `${describeError(reason)}. Its delivery does not know of it: await the promise.${framesOf(reason)}`,
      );
      return;
    }
    const listeners: unknown[] = process.listeners('unhandledRejection');
    const ours = listeners.filter(isOurs);
    if (ours.length < listeners.length || ours.some((listener) => listener[OURS].owns())) return;
    // Nobody else's, and nobody else listens. Of several applications the last one speaks, once.
    if (ours.at(-1) === this.#listener) handBack(ours, reason);
  }
}

function isOurs(listener: unknown): listener is Listener {
  return typeof listener === 'function' && OURS in listener;
}

/** The modes in which Node does what it does whether anybody listens or not. */
const REGARDLESS = /--unhandled-rejections[= ](none|strict|warn)\b(?!-)/;

/** Has Node meet the rejection as if none of these listeners were there. */
function handBack(ours: readonly Listener[], reason: unknown): void {
  if (REGARDLESS.test([...process.execArgv, process.env['NODE_OPTIONS']].join(' '))) return;
  for (const listener of ours) listener[OURS].pause();
  void Promise.reject(reason);
}
