import { PaymentsError } from './payments-error.js';

const MAX_LENGTH = 1000;
const MAX_FRAMES = 10;
/** How many errors of a chain of causes are named. */
const MAX_CAUSES = 3;

/**
 * Describes in one line anything that a handler may throw: an error, a frozen object, `undefined`, an object whose
 * getters throw. Never throws itself. At most 1,000 characters, none of them a control character: it is one
 * line in a log, and every database can store it.
 */
export function describeError(thrown: unknown): string {
  try {
    return oneLine(describe(thrown, MAX_CAUSES));
  } catch {
    return 'something that cannot be described was thrown';
  }
}

/**
 * The innermost frames of the stack of an error, for the log, each on a line of its own; empty if it has
 * none. Never throws. The message is left out: {@link describeError} returns it.
 */
export function framesOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return '';
    const { stack, message } = thrown;
    if (typeof stack !== 'string') return '';
    // A message may have lines that look like frames.
    const start = stack.indexOf(message);
    const traced = stack.slice(start === -1 ? 0 : start + message.length).slice(0, 10_000);
    const frames = traced.match(/^ {4}at [^\n]{1,500}$/gm) ?? [];
    return frames
      .slice(0, MAX_FRAMES)
      .map((frame) => `\n${frame}`)
      .join('');
  } catch {
    return '';
  }
}

/** Whether the error means that another attempt cannot succeed. Never throws. */
export function isUnrecoverable(thrown: unknown): boolean {
  try {
    return (
      thrown instanceof PaymentsError &&
      (thrown.code === 'unrecoverable' || thrown.code === 'data_invalid')
    );
  } catch {
    // `instanceof` throws for a revoked proxy.
    return false;
  }
}

function describe(thrown: unknown, causes: number): string {
  if (thrown instanceof Error) {
    const { name, message, cause } = thrown;
    const own = `${name}${codeOf(thrown)}: ${clip(message)}`;
    if (cause === undefined || causes === 1) return own;
    return `${own} (cause: ${describe(cause, causes - 1)})`;
  }
  if (typeof thrown === 'string') return clip(thrown);
  if (typeof thrown === 'object' && thrown !== null) {
    const { message } = thrown as { message?: unknown };
    // Only the message of an object is used, because the other fields may be a payload.
    return typeof message === 'string' ? clip(message) : 'an object without a message was thrown';
  }
  // The text of a function is its source.
  if (typeof thrown === 'function') return 'a function was thrown';
  return `${clip(String(thrown))} was thrown`;
}

/** The error code, for example `data_invalid`, `ECONNREFUSED`, or `23505` of a database. */
function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? ` (${code})` : '';
}

function oneLine(text: string): string {
  return clip(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')).toWellFormed();
}

function clip(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text;
}
