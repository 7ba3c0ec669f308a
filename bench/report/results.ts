import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import type { Sample, Table, Target } from '../rounds/row.ts';

/** A table, measured. */
export interface TableResult extends Omit<Table, 'contenders' | 'targets' | 'notes' | 'warmUp'> {
  readonly contenders: readonly { readonly name: string; readonly rounds: readonly Sample[] }[];
  readonly targets: readonly Target[];
  readonly notes: readonly string[];
}

/** A row, measured: on which machine, and when. */
export interface RowResult {
  readonly title: string;
  readonly date: string;
  readonly machine: string;
  /** How much of the processor others took in the second before it began, from 0 to 1. */
  readonly busyBefore: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly tables: readonly TableResult[];
}

/** What `bench/results.json` holds: the last run of each row. */
export type Results = Readonly<Record<string, RowResult>>;

export function readResults(file: string): Results {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : {};
}

export async function writeResults(file: string, results: Results): Promise<void> {
  const options = { ...(await resolveConfig(file)), filepath: file };
  await writeFile(file, await format(JSON.stringify(results, rounded), options));
}

/** Four digits are more than any of it is worth. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value;
}
