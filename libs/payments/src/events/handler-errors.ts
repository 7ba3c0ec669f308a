import { AsyncLocalStorage } from 'node:async_hooks';
import { describeError, isUnrecoverable, UnrecoverableError } from '../errors/payments-error.js';

/** How many characters of the description of each of two errors are kept. */
const MAX_LENGTH = 450;
/** Maximum number of errors of a chain of causes that are compared. */
const MAX_CAUSES = 10;

interface Attempt {
  /** The error of the handler, wrapped because a handler can throw `undefined`. */
  failure?: { readonly thrown: unknown };
}

const attempts = new AsyncLocalStorage<Attempt>();

/**
 * Returns a function that does what the method of a handler does, and records its error for {@link keepingErrors}. It
 * inherits from the method, so that it has the method's name and metadata.
 */
export function recordingErrors<F extends (...args: never[]) => unknown>(method: F): F {
  const recording = function (this: unknown, ...args: Parameters<F>): unknown {
    try {
      const result = method.apply(this, args);
      if (result instanceof Promise) result.catch(recordError);
      return result;
    } catch (thrown) {
      recordError(thrown);
      throw thrown;
    }
  };
  Object.setPrototypeOf(recording, method);
  Object.defineProperty(recording, 'name', { value: method.name });
  return recording as unknown as F;
}

/**
 * Runs an attempt. If the handler threw one error, and a filter or an interceptor of the handler then threw another, it
 * rejects with an error that describes both: the second may be a mistake in the filter, and must not hide the first.
 */
export async function keepingErrors<R>(run: () => Promise<R>): Promise<R> {
  const attempt: Attempt = {};
  try {
    return await attempts.run(attempt, run);
  } catch (second) {
    const { failure } = attempt;
    if (failure === undefined || contains(second, failure.thrown)) throw second;
    throw bothErrors(failure.thrown, second);
  }
}

/** Records the error of a guard, a pipe, an interceptor or the handler, before the filters run. */
export function recordError(thrown: unknown): void {
  const attempt = attempts.getStore();
  if (attempt !== undefined) attempt.failure ??= { thrown };
}

/** Whether `second` is the first error, or has it as a cause, so that its description contains the first. */
function contains(second: unknown, first: unknown): boolean {
  try {
    let error = second;
    for (let depth = 0; depth < MAX_CAUSES; depth += 1) {
      if (error === first) return true;
      if (!(error instanceof Error) || error.cause === undefined) return false;
      error = error.cause;
    }
  } catch {
    // A getter or a revoked proxy threw.
  }
  return false;
}

/** The retry is decided by both errors: if one is unrecoverable, the delivery is dead. */
function bothErrors(first: unknown, second: unknown): Error {
  const [own, later] = [first, second].map((thrown) => describeError(thrown).slice(0, MAX_LENGTH));
  const message = `${own}. A filter or an interceptor of the handler then threw: ${later}`;
  const isFinal = isUnrecoverable(first) || isUnrecoverable(second);
  const both = isFinal ? new UnrecoverableError(message) : new Error(message);
  try {
    if (first instanceof Error && typeof first.stack === 'string') {
      Object.defineProperty(both, 'stack', { value: first.stack });
    }
  } catch {
    // A getter or a revoked proxy threw.
  }
  return both;
}
