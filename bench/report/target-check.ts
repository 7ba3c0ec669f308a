import { median, medianOfPairs } from '../rounds/statistics.ts';
import type { Target } from '../rounds/row.ts';
import type { TableResult } from './results.ts';

/** The values of the rounds of a contender. */
export function valuesOf(table: TableResult, name: string): number[] {
  const contender = table.contenders.find((one) => one.name === name);
  return contender?.rounds.map(({ value }) => value) ?? [];
}

/** The measured value of a target, and whether it reached its bound. */
export function checkTarget(
  table: TableResult,
  target: Target,
): { found: number; reached: boolean } {
  const subject = valuesOf(table, target.subject);
  const against = target.against === undefined ? [] : valuesOf(table, target.against);
  const found =
    target.of === 'value'
      ? median(subject)
      : medianOfPairs(subject, against, (a, b) => (target.of === 'ratio' ? a / b : a - b));
  return {
    found,
    reached: target.at === 'least' ? found >= target.bound : found <= target.bound,
  };
}
