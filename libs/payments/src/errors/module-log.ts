import { inspect, type InspectOptions } from 'node:util';
import { Logger } from '@nestjs/common';
import type { LoggerService } from '@nestjs/common';
import { systemRuntime } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { describeError } from './payments-error.js';
import { guard } from './unhandled-rejections.js';

/**
 * What a log line is about. A caller can pass an object with more properties, such as a delivery, because the other
 * properties are not logged.
 */
export interface LogSubject {
  readonly company?: string | undefined;
  /** Id of the event. */
  readonly id?: string | undefined;
  readonly handler?: string | undefined;
}

/**
 * The message of a log line about a company, an event or a handler. Loggers that print text print the text; loggers
 * that print JSON print the text and the fields.
 *
 * - Nest's `ConsoleLogger` prints text with `util.inspect`, and JSON with `JSON.stringify`.
 * - nestjs-pino copies the object's own properties. pino prints the property `msg` as the text of the line.
 * - nest-winston copies the object's own properties and reads `message`.
 *
 * A logger of the application may expect a string, so all methods of strings work on this object too.
 */
export class LogLine {
  readonly msg: string;
  declare readonly company?: string;
  declare readonly eventId?: string;
  declare readonly handler?: string;

  constructor(text: string, { company, id, handler }: LogSubject) {
    this.msg = text;
    if (company !== undefined) this.company = company;
    if (id !== undefined) this.eventId = id;
    if (handler !== undefined) this.handler = handler;
  }

  get message(): string {
    return this.msg;
  }

  get length(): number {
    return this.msg.length;
  }

  toString(): string {
    return this.msg;
  }

  valueOf(): string {
    return this.msg;
  }

  toJSON(): object {
    const { msg: message, ...fields } = this;
    return { message, ...fields };
  }

  /** Returns the text of the line. If the line is a field of another object, returns the text and the fields. */
  [inspect.custom](depth: number | null, options: InspectOptions): unknown {
    return depth === options.depth ? this.msg : this.toJSON();
  }
}

// The methods of strings, such as includes(), work with any object whose toString() they can call.
Object.setPrototypeOf(LogLine.prototype, String.prototype);

/** The shortest time between two lines about the same subject, in milliseconds. */
const INTERVAL_MS = 60_000;
/**
 * Maximum number of subjects that are throttled separately. All further subjects are throttled together, as one
 * subject.
 */
const MAX_SUBJECTS = 100;
const OTHERS = 'other subjects';

interface Line {
  readonly level: 'warn' | 'error';
  readonly message: string | (() => string);
  readonly about?: LogSubject | undefined;
}

interface Subject {
  /** Time of the latest line. */
  readonly since: number;
  suppressed: number;
  latest: Line;
}

/** Maximum number of subjects that one line names. */
const MAX_LISTED = 10;

/**
 * Logs problems that may repeat: at most one line per subject and minute, with the number of suppressed lines. One
 * minute after a line, a timer logs how many lines were suppressed since then, in one line for all subjects. Therefore,
 * this number is logged even if a problem does not occur again. Memory and the number of lines are limited for any
 * number of subjects.
 *
 * Subjects appear in the log, so their names must be clear to the reader of the log. A message can be a function, which
 * is called only if the line is logged.
 */
export class ThrottledLog {
  /** The subjects in the order of their latest lines, the oldest first. */
  readonly #subjects = new Map<string, Subject>();
  #cancelTimer: (() => void) | null = null;

  /** @param runtime the clock and the timers. Default: those of Node.js */
  constructor(
    private readonly logger: Pick<LoggerService, 'warn' | 'error'>,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic' | 'schedule'> & {
      /** Calls the callback when the application closes. The runtime of the module has this method. */
      onClose?(callback: () => void): void;
    } = systemRuntime,
  ) {
    runtime.onClose?.(() => this.flush());
  }

  /** Logs a warning, unless a line about the same subject was logged within the last minute. */
  warn(subject: string, message: string | (() => string), about?: LogSubject): void {
    this.#write(subject, { level: 'warn', message, about });
  }

  /** Logs an error, unless a line about the same subject was logged within the last minute. */
  error(subject: string, message: string | (() => string), about?: LogSubject): void {
    this.#write(subject, { level: 'error', message, about });
  }

  /** Immediately logs how many lines were suppressed, and stops the timer. Never throws. */
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

  #log({ level, message, about }: Line, suppressed: number): void {
    const text = typeof message === 'function' ? message() : message;
    const more = suppressed > 0 ? ` (${suppressed} more since the previous line)` : '';
    this.logger[level](lineOf(text + more, about));
  }

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

export type ThrottledLogRuntime = NonNullable<ConstructorParameters<typeof ThrottledLog>[1]>;

/** Returns the line that reports the suppressed lines of several subjects, the subject with the most lines first. */
function summaryOf(subjects: readonly (readonly [string, Subject])[]): Line {
  const sorted = subjects.toSorted(([, a], [, b]) => b.suppressed - a.suppressed);
  const listed = sorted
    .slice(0, MAX_LISTED)
    .map(([name, { suppressed }]) => `${suppressed} about ${JSON.stringify(name)}`);
  const rest = sorted.length - listed.length;
  if (rest > 0) listed.push(`others about ${rest} more subjects`);
  const level = sorted.some(([, { latest }]) => latest.level === 'error') ? 'error' : 'warn';
  return { level, message: `Lines were suppressed since the previous ones: ${listed.join(', ')}.` };
}

function lineOf(text: string | LogLine, about: LogSubject = {}): string | LogLine {
  const { company, id, handler } = about;
  if (typeof text !== 'string' || (company ?? id ?? handler) === undefined) return text;
  return new LogLine(text, about);
}

/** Prints a warning of Node.js. The logger of the application is not used, because it has failed. */
const warn = (message: unknown): void => process.emitWarning(String(message), 'PaymentsWarning');
const failures = new ThrottledLog({ warn, error: warn });

function loggerFailed(error: unknown): void {
  failures.warn(
    'logger',
    () =>
      'The logger of the application failed, so a line of nestjs-payments may be missing in the log. Nothing else is ' +
      `affected. ${describeError(error)}`,
  );
}

/**
 * The logger of this module: Nest's logger, which calls the logger of the application. Never throws; an error of the
 * logger is printed as a warning of Node.js.
 */
export class ModuleLogger {
  readonly #logger: Logger;

  constructor(context: string) {
    this.#logger = new Logger(context);
  }

  debug(text: string, about?: LogSubject): void {
    this.#call('debug', text, about);
  }

  log(text: string, about?: LogSubject): void {
    this.#call('log', text, about);
  }

  warn(text: string | LogLine, about?: LogSubject): void {
    this.#call('warn', text, about);
  }

  error(text: string | LogLine, about?: LogSubject): void {
    this.#call('error', text, about);
  }

  #call(
    level: 'debug' | 'log' | 'warn' | 'error',
    text: string | LogLine,
    about: LogSubject | undefined,
  ): void {
    try {
      guard(loggerFailed, () => this.#logger[level](lineOf(text, about)));
    } catch (error) {
      loggerFailed(error);
    }
  }
}
