import { existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { machineMs } from './application-protocol.js';
import type { JournalEntry } from './application-protocol.js';

type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** The journal of one process: a file that outlives the process. */
export class Journal {
  readonly #file: number;

  constructor(private readonly file: string) {
    this.#file = openSync(file, 'a');
  }

  /** Different for each process of a run. */
  get name(): string {
    return path.basename(this.file, '.journal');
  }

  /** Adds an entry with the current time, unless it has one. */
  write(entry: Without<JournalEntry, 'at'> & { readonly at?: number }): void {
    writeSync(this.#file, `${JSON.stringify({ at: machineMs(), ...entry })}\n`);
  }
}

/**
 * The entries of a journal. The last line may be incomplete if its process was killed, and a process that never started
 * has none.
 */
export function readJournal(file: string): JournalEntry[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as JournalEntry);
}
