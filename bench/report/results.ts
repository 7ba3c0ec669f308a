import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import type { Sample, Table, Target } from '../rounds/row.ts';

/** A table and its measured rounds. */
export interface TableResult extends Omit<Table, 'contenders' | 'targets' | 'notes' | 'warmUp'> {
  readonly contenders: readonly { readonly name: string; readonly rounds: readonly Sample[] }[];
  readonly targets: readonly Target[];
  readonly notes: readonly string[];
}

/** A row and its measured tables. */
export interface RowResult {
  readonly title: string;
  readonly date: string;
  readonly machine: string;
  /** Processor load of other processes in the second before the row started, from 0 to 1. */
  readonly busyBefore: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly tables: readonly TableResult[];
}

/** The content of `bench/results.json`: the last run of each row. */
export type Results = Readonly<Record<string, RowResult>>;

/** Reads the results, or none if the file is missing. */
export function readResults(file: string): Results {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : {};
}

/** Writes the results, formatted and with four significant digits. */
export async function writeResults(file: string, results: Results): Promise<void> {
  const options = { ...(await resolveConfig(file)), filepath: file };
  await writeFile(file, await format(JSON.stringify(results, rounded), options));
}

// The measurements are less exact than four digits.
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value;
}
