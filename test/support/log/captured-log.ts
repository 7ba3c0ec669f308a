import { Logger } from '@nestjs/common';
import type { LoggerService } from '@nestjs/common';

/** A Nest logger that records its lines. */
export class CapturedLog implements LoggerService {
  readonly lines: string[] = [];

  log(...words: unknown[]): void {
    this.#keep('log', words);
  }
  warn(...words: unknown[]): void {
    this.#keep('warn', words);
  }
  error(...words: unknown[]): void {
    this.#keep('error', words);
  }
  debug(): void {}
  verbose(): void {}
  fatal(...words: unknown[]): void {
    this.#keep('fatal', words);
  }

  /** The lines that match. */
  matching(pattern: RegExp): string[] {
    return this.lines.filter((line) => pattern.test(line));
  }

  #keep(level: string, words: unknown[]): void {
    this.lines.push(`${level} ${words.map(String).join(' ')}`);
  }
}

/** Records the log lines of `work`. */
export async function logged<R>(work: (log: CapturedLog) => Promise<R>): Promise<R> {
  const log = new CapturedLog();
  Logger.overrideLogger(log);
  try {
    return await work(log);
  } finally {
    Logger.overrideLogger(false);
  }
}

/** Collects the warnings and errors that are logged until `ending` is disposed of. */
export function captureWarnings(ending: AsyncDisposableStack): string[] {
  const lines: string[] = [];
  const add = (line: unknown): void => void lines.push(String(line));
  Logger.overrideLogger({ log() {}, warn: add, error: add });
  ending.defer(() => Logger.overrideLogger(false));
  return lines;
}
