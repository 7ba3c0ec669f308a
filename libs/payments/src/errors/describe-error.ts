import { PaymentsError } from './payments-error.js';

const MAX_LENGTH = 1000;
const MAX_FRAMES = 10;
/** How many errors are named of a chain of causes. */
const MAX_CAUSES = 3;

/**
 * One line about anything a handler may throw: an error, a frozen object, `undefined`, an object whose
 * getters throw. Never throws itself. At most 1,000 characters, none of them a control character: a log takes
 * it for one line, and a database takes it at all.
 */
export function describeError(thrown: unknown): string {
  try {
    return oneLine(describe(thrown, MAX_CAUSES));
  } catch {
    return 'something that cannot be described was thrown';
  }
}

/**
 * The innermost frames of the stack of an error, for the log, each on a line of its own; empty where it has
 * none. Never throws. Without the message, which {@link describeError} bounds.
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

/** Whether what was thrown says that another attempt cannot help. Never throws. */
export function isUnrecoverable(thrown: unknown): boolean {
  try {
    return (
      thrown instanceof PaymentsError &&
      (thrown.code === 'unrecoverable' || thrown.code === 'data_invalid')
    );
  } catch {
    // `instanceof` asks a revoked proxy for its prototype.
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
    // Only a message is taken from an object: the rest of it may be a payload.
    return typeof message === 'string' ? clip(message) : 'an object without a message was thrown';
  }
  // The text of a function is its source.
  if (typeof thrown === 'function') return 'a function was thrown';
  return `${clip(String(thrown))} was thrown`;
}

/** What a program would look at first: `data_invalid`, `ECONNREFUSED`, a database's `23505`. */
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
