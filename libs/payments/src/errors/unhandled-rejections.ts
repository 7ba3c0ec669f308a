import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';

type OnRejection = (reason: unknown) => void;

/** The function that gets the unhandled rejections of the promises that were started in the current async context. */
const guards = new AsyncLocalStorage<OnRejection | undefined>();

/**
 * Runs a function of the application in an async context. While {@link UnhandledRejections} is open, `onRejection` gets
 * the unhandled rejections of promises that the function starts. By default, Node would exit because of such a
 * rejection.
 */
export function guard<T>(onRejection: OnRejection, work: () => T): T {
  return guards.run(onRejection, work);
}

/**
 * Returns a function that runs code in the async context in which `callersGuard()` was called. The module uses the
 * returned function for its own code in callbacks that a guarded function calls.
 */
export function callersGuard(): <T>(work: () => T) => T {
  const outer = guards.getStore();
  return (work) => guards.run(outer, work);
}

/** Key of a property that marks the listener of each copy of this package in the process. */
const OURS = Symbol.for('nestjs-payments:unhandled-rejection');

interface Listener {
  (reason: unknown): void;
  [OURS]: {
    /** Whether a function that this copy of the package guards has started the rejected promise. */
    owns(): boolean;
    /** Removes the listener until the next turn of the event loop. */
    pause(): void;
  };
}

/** The listener of this copy of the package, and the number of applications that need it. */
const listener: Listener = Object.assign(onRejection, {
  [OURS]: {
    owns: () => guards.getStore() !== undefined,
    pause: () => {
      process.off('unhandledRejection', listener);
      setImmediate(() => applications > 0 && process.on('unhandledRejection', listener));
    },
  },
});
let applications = 0;

/**
 * Keeps the process running if a function of the application, such as a handler or an observer, starts a promise and
 * does not await it, and the promise then rejects; see {@link guard}. By default, Node would exit, which would
 * interrupt all other attempts in the process.
 *
 * Any other rejection has the same effect as without this class: other listeners receive it. If there is no other
 * listener, Node follows its flag `--unhandled-rejections`.
 */
@Injectable()
export class UnhandledRejections {
  #open = false;

  open(): void {
    if (this.#open) return;
    this.#open = true;
    applications += 1;
    if (applications === 1) process.on('unhandledRejection', listener);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    applications -= 1;
    if (applications === 0) process.off('unhandledRejection', listener);
  }
}

function onRejection(reason: unknown): void {
  const ofFunction = guards.getStore();
  // The function that handles the rejection may itself call functions of the application.
  if (ofFunction !== undefined) return ofFunction(reason);
  const listeners: unknown[] = process.listeners('unhandledRejection');
  const ours = listeners.filter(isOurs);
  if (ours.length < listeners.length || ours.some((other) => other[OURS].owns())) return;
  // No guarded function started the promise, and there is no listener other than those of the copies of this package.
  // Only the listener that was added last returns the rejection to Node, so that Node handles it once.
  if (ours.at(-1) === listener) returnToNode(ours, reason);
}

function isOurs(other: unknown): other is Listener {
  return typeof other === 'function' && OURS in other;
}

/** The values of `--unhandled-rejections` for which Node acts in the same way with and without listeners. */
const LISTENERS_IGNORED = /--unhandled-rejections[= ](none|strict|warn)\b(?!-)/;

/**
 * Rejects a promise with `reason` while the listeners `ours` are removed, so that Node handles the rejection as by
 * default.
 */
function returnToNode(ours: readonly Listener[], reason: unknown): void {
  if (LISTENERS_IGNORED.test([...process.execArgv, process.env['NODE_OPTIONS']].join(' '))) return;
  for (const other of ours) other[OURS].pause();
  void Promise.reject(reason);
}
