import type { Logger } from '@nestjs/common';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { LogLine } from './log-line.js';

/** The shortest time between two lines about one subject, in milliseconds. */
const INTERVAL_MS = 60_000;
/** Maximum number of subjects that are throttled separately. All further subjects share one line. */
const MAX_SUBJECTS = 100;
const OTHERS = Symbol('other subjects');

type Message = string | LogLine;

/**
 * Logs problems that may repeat: at most one line per subject and minute, with the number of suppressed lines. Memory
 * and the number of lines are limited for any number of subjects.
 *
 * A message can be a function, which is called only if the line is logged.
 */
export class ThrottledLog {
  readonly #subjects = new Map<string | symbol, { readonly since: number; suppressed: number }>();

  constructor(
    private readonly logger: Pick<Logger, 'warn' | 'error'>,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic'>,
  ) {}

  /** Logs a warning, unless a line about the same subject was logged within the last minute. */
  warn(subject: string, message: Message | (() => Message)): void {
    this.#write('warn', subject, message);
  }

  /** Logs an error, unless a line about the same subject was logged within the last minute. */
  error(subject: string, message: Message | (() => Message)): void {
    this.#write('error', subject, message);
  }

  #write(level: 'warn' | 'error', subject: string, message: Message | (() => Message)): void {
    const now = this.runtime.monotonic();
    const key = this.#keyOf(subject, now);
    const last = this.#subjects.get(key);
    if (last !== undefined && now - last.since < INTERVAL_MS) {
      last.suppressed += 1;
      return;
    }
    this.#subjects.delete(key);
    this.#subjects.set(key, { since: now, suppressed: 0 });
    const line = typeof message === 'function' ? message() : message;
    const more = last?.suppressed ? ` (${last.suppressed} more since the previous line)` : '';
    this.logger[level](typeof line === 'string' ? `${line}${more}` : line.append(more));
  }

  #keyOf(subject: string, now: number): string | symbol {
    if (this.#subjects.has(subject) || this.#subjects.size < MAX_SUBJECTS) return subject;
    // Oldest first.
    for (const [key, { since }] of this.#subjects) {
      if (now - since < INTERVAL_MS) break;
      this.#subjects.delete(key);
    }
    return this.#subjects.size < MAX_SUBJECTS ? subject : OTHERS;
  }
}
