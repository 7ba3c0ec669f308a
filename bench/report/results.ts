import type { Sample, Table, Target } from '../rounds/row.ts';
import { median, medianOfPairs, quantile } from '../rounds/statistics.ts';

/** Summary of the rounds of a contender. */
export interface ContenderResult {
  readonly name: string;
  readonly median: number;
  /** The lower and the upper quartile. */
  readonly middleHalf: readonly [number, number];
  /** Median, over all rounds, of the value of the first contender divided by the value of this contender. */
  readonly firstToThis: number;
  /** The medians of the other measurements, by name. */
  readonly more?: Readonly<Record<string, number>>;
}

/** The measured value of a target, and whether the value reached the bound of the target. */
export interface TargetResult extends Pick<Target, 'text' | 'subject'> {
  readonly found: number;
  readonly reached: boolean;
}

/** A measured table. */
export interface TableResult extends Pick<Table, 'title' | 'unit' | 'better'> {
  readonly contenders: readonly ContenderResult[];
  readonly targets: readonly TargetResult[];
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

/** The rows that were run, by name. */
export type Results = Readonly<Record<string, RowResult>>;

/** Summarizes the rounds of a table. `samples` contains a list for each contender, in the order of the rounds. */
export function summarize(
  { title, unit, better, contenders, targets, notes = [] }: Table,
  samples: readonly (readonly Sample[])[],
): TableResult {
  const values = samples.map((rounds) => rounds.map(({ value }) => value));
  const valuesOf = (name: string): number[] =>
    values[contenders.findIndex((contender) => contender.name === name)] ?? [];
  return {
    title,
    unit,
    better,
    contenders: contenders.map(({ name }, index) => {
      const own = values[index]!;
      const names = Object.keys(samples[index]![0]?.more ?? {});
      const more = names.map((what) => [
        what,
        median(samples[index]!.map((sample) => sample.more?.[what] ?? NaN)),
      ]);
      return {
        name,
        median: median(own),
        middleHalf: [quantile(own, 0.25), quantile(own, 0.75)],
        firstToThis: medianOfPairs(values[0]!, own, (a, b) => a / b),
        ...(names.length > 0 ? { more: Object.fromEntries(more) as Record<string, number> } : {}),
      };
    }),
    targets: targets.map(({ text, of, subject, against, at, bound }) => {
      const found =
        against === undefined || of === 'value'
          ? median(valuesOf(subject))
          : medianOfPairs(valuesOf(subject), valuesOf(against), (a, b) =>
              of === 'ratio' ? a / b : a - b,
            );
      return { text, subject, found, reached: at === 'least' ? found >= bound : found <= bound };
    }),
    notes,
  };
}
