import type { Logger } from '@nestjs/common';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { LogLine } from './log-line.js';

/** The shortest time between two lines about one subject, in milliseconds. */
const INTERVAL_MS = 60_000;
/** Maximum number of subjects that are throttled separately. All further subjects share one line. */
const MAX_SUBJECTS = 100;
const OTHERS = 'other subjects';

type Message = string | LogLine;

interface Line {
  readonly level: 'warn' | 'error';
  readonly message: Message | (() => Message);
}

/** What a throttled log knows about a subject since its latest line. */
interface Subject {
  /** Time of the latest line. */
  readonly since: number;
  /** Number of messages since then. */
  suppressed: number;
  /** The latest of them. */
  latest: Line;
}

/** Maximum number of subjects in one line about several. */
const MAX_LISTED = 10;

/**
 * Logs problems that may repeat: at most one line per subject and minute, with the number of suppressed lines. A minute
 * after a line, a timer logs how many were suppressed, in one line for all subjects: so each problem is counted also if
 * it ends. Memory and the number of lines are limited for any number of subjects.
 *
 * Subjects are words for the reader of the log. A message can be a function, which is called only if the line is logged.
 */
export class ThrottledLog {
  /** Oldest line first. */
  readonly #subjects = new Map<string, Subject>();
  #cancelTimer: (() => void) | null = null;

  constructor(
    private readonly logger: Pick<Logger, 'warn' | 'error'>,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic' | 'schedule'> & {
      /** The runtime of the module has it: it calls the callback when the application closes. */
      onClose?(callback: () => void): void;
    },
  ) {
    runtime.onClose?.(() => this.flush());
  }

  /** Logs a warning, unless a line about the same subject was logged within the last minute. */
  warn(subject: string, message: Message | (() => Message)): void {
    this.#write(subject, { level: 'warn', message });
  }

  /** Logs an error, unless a line about the same subject was logged within the last minute. */
  error(subject: string, message: Message | (() => Message)): void {
    this.#write(subject, { level: 'error', message });
  }

  /** Logs now how many lines were suppressed, and stops the timer. Never throws. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const reported = [...this.#subjects].filter(([, { suppressed }]) => suppressed > 0);
    const now = this.runtime.monotonic();
    for (const [name, { latest }] of reported) this.#restart(name, latest, now);
    try {
      const [[, only] = [], ...others] = reported;
      if (only === undefined) return;
      if (others.length === 0) this.#log(only.latest, only.suppressed - 1);
      else this.#log(summaryOf(reported), 0);
    } catch {
      // The application's logger failed in a timer, where its error would end the process.
    }
  }

  #write(subject: string, latest: Line): void {
    const now = this.runtime.monotonic();
    const name = this.#nameOf(subject, now);
    const last = this.#subjects.get(name);
    if (last === undefined || now - last.since >= INTERVAL_MS) {
      this.#restart(name, latest, now);
      this.#log(latest, last?.suppressed ?? 0);
      return;
    }
    last.suppressed += 1;
    last.latest = latest;
    const dueInMs = last.since + INTERVAL_MS - now;
    this.#cancelTimer ??= this.runtime.schedule(dueInMs, () => this.flush());
  }

  #log({ level, message }: Line, suppressed: number): void {
    const line = typeof message === 'function' ? message() : message;
    const more = suppressed > 0 ? ` (${suppressed} more since the previous line)` : '';
    this.logger[level](typeof line === 'string' ? `${line}${more}` : line.append(more));
  }

  /** Starts the next minute of a subject. */
  #restart(name: string, latest: Line, now: number): void {
    this.#subjects.delete(name);
    this.#subjects.set(name, { since: now, suppressed: 0, latest });
  }

  #nameOf(subject: string, now: number): string {
    if (this.#subjects.has(subject) || this.#subjects.size < MAX_SUBJECTS) return subject;
    for (const [name, { since, suppressed }] of this.#subjects) {
      if (now - since < INTERVAL_MS) break;
      if (suppressed === 0) this.#subjects.delete(name);
    }
    return this.#subjects.size < MAX_SUBJECTS ? subject : OTHERS;
  }
}

/** The clock and the timers of a throttled log. */
export type ThrottledLogRuntime = ConstructorParameters<typeof ThrottledLog>[1];

/** The message about suppressed lines of several subjects, most lines first. */
function summaryOf(subjects: readonly (readonly [string, Subject])[]): Line {
  const sorted = subjects.toSorted(([, a], [, b]) => b.suppressed - a.suppressed);
  const listed = sorted
    .slice(0, MAX_LISTED)
    .map(([name, { suppressed }]) => `${suppressed} about ${JSON.stringify(name)}`);
  const rest = sorted.length - listed.length;
  if (rest > 0) listed.push(`others about ${rest} more`);
  const level = sorted.some(([, { latest }]) => latest.level === 'error') ? 'error' : 'warn';
  return { level, message: `Lines were suppressed since the previous ones: ${listed.join(', ')}.` };
}
