import { inspect, type InspectOptions } from 'node:util';

/** What a log line is about: a company, an event of it, or a delivery of that event. */
export interface LogSubject {
  readonly company?: string | undefined;
  /** Id of the event. */
  readonly id?: string | undefined;
  readonly handler?: string | undefined;
}

/**
 * The message of a log line about a company, an event or a handler. Loggers that print text print its sentence; loggers
 * that print JSON print the sentence and the fields.
 *
 * - Nest's `ConsoleLogger` prints text with `util.inspect`, and JSON with `JSON.stringify`.
 * - nestjs-pino copies the own properties. pino's name for the sentence is `msg`.
 * - nest-winston copies the own properties and reads `message`.
 *
 * A logger of the application may expect a string, so all methods of strings work too.
 */
export class LogLine {
  readonly msg: string;
  declare readonly company?: string;
  declare readonly eventId?: string;
  declare readonly handler?: string;

  constructor(sentence: string, { company, id, handler }: LogSubject) {
    this.msg = sentence;
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

  /** The same line with a longer sentence. */
  append(text: string): LogLine {
    const { msg, company, eventId: id, handler } = this;
    return new LogLine(`${msg}${text}`, { company, id, handler });
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

  /** The sentence or, within another object, the sentence and the fields. */
  [inspect.custom](depth: number | null, options: InspectOptions): unknown {
    return depth === options.depth ? this.msg : this.toJSON();
  }
}

// The methods of strings, such as includes(), work with any object whose toString() they can call.
Object.setPrototypeOf(LogLine.prototype, String.prototype);
