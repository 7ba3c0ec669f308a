import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger } from '@nestjs/common';
import { describeError, framesOf } from '../errors/describe-error.js';

/** The run that an unhandled rejection came from. */
interface Run {
  readonly handler: string;
  readonly company: string;
}

/** Marks the listeners of this package, also those of other applications and other copies of it in the process. */
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
 * Logs the rejections of promises that a handler started and did not await, with the handler's name. By Node's default,
 * one of them ends the process, with every other run in it.
 *
 * All other rejections have the same effect as without this class: other listeners receive them, and if there is none,
 * Node does what its flag `--unhandled-rejections` says.
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

  /** Runs the handler in an async context by which its unhandled rejections are recognized. */
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
    // It is from none of the applications, and there is no other listener: the last application returns it to Node, once.
    if (ours.at(-1) === this.#listener) handBack(ours, reason);
  }
}

function isOurs(listener: unknown): listener is Listener {
  return typeof listener === 'function' && OURS in listener;
}

/** The modes in which Node ignores whether there are listeners. */
const REGARDLESS = /--unhandled-rejections[= ](none|strict|warn)\b(?!-)/;

/** Rejects again while these listeners are removed, so that Node applies its default. */
function handBack(ours: readonly Listener[], reason: unknown): void {
  if (REGARDLESS.test([...process.execArgv, process.env['NODE_OPTIONS']].join(' '))) return;
  for (const listener of ours) listener[OURS].pause();
  void Promise.reject(reason);
}
