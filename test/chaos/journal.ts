import { existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { monotonicMs } from './application-protocol.js';
import type { JournalEntry } from './application-protocol.js';

type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** The journal of one process: a file that remains when the process is killed. */
export class Journal {
  readonly #file: number;

  constructor(private readonly file: string) {
    this.#file = openSync(file, 'a');
  }

  /** Unique among the processes of a chaos run. */
  get name(): string {
    return path.basename(this.file, '.journal');
  }

  /** Adds an entry; its time is the current time by default. */
  write(entry: Without<JournalEntry, 'at'> & { readonly at?: number }): void {
    writeSync(this.#file, `${JSON.stringify({ at: monotonicMs(), ...entry })}\n`);
  }
}

/**
 * The entries of a journal, without a last line that is incomplete because its process was killed. A process that did not
 * start has no entries.
 */
export function readJournal(file: string): JournalEntry[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as JournalEntry);
}
