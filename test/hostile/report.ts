import { availableParallelism, loadavg } from 'node:os';
import type { Round } from './round.ts';
import type { FamilyReport } from './tally.ts';
import { wrongResults, linesByCode } from './round-failures.ts';

/** The lines of the result table of a round. */
export function tableOf(round: Round): string[] {
  const { families, sender, receiver, caller, log } = round;
  const rows = [...families, total(families)].map((family) => [
    family.name,
    String(family.attempts),
    String(family.accepted),
    String(family.wrong.length),
    Object.entries(family.rejected)
      .toSorted(([, a], [, b]) => b - a)
      .map(([status, count]) => `${status}: ${count}`)
      .join('  '),
  ]);
  const ms = (value: number): string => `${value.toFixed(0)} ms`;
  const lines = [...linesByCode(log)];
  const facts: [string, string][] = [
    ['wrong responses and events', String(wrongResults(round).length)],
    ['growth of peak RSS', `${receiver.rssGrowthMb.toFixed(0)} MB`],
    ['growth of peak RSS, calling', `${caller.rssGrowthMb.toFixed(0)} MB`],
    ['event-loop delay, p99', ms(receiver.loopDelayP99Ms)],
    ['event-loop delay, p99, calling', ms(caller.loopDelayP99Ms)],
    ['valid requests sent', String(sender.sent)],
    ['valid requests with response 200', String(sender.accepted)],
    ['  attempts rejected as busy', String(sender.busy)],
    ['  attempts without a response', String(sender.disconnected)],
    ['latency of valid requests', `p50 ${ms(sender.p50Ms)}, p99 ${ms(sender.p99Ms)}`],
    [
      'load of the machine, last minute',
      `${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores`,
    ],
    ['log lines', String(lines.reduce((sum, [, count]) => sum + count, 0))],
    ...lines.map(([code, count]): [string, string] => [`  ${code}`, String(count)]),
  ];
  return [
    ...align([['', 'attempts', 'accepted', 'wrong', 'rejected by status or code'], ...rows]),
    '',
    ...facts.map(([name, value]) => `${name.padEnd(36)}${value}`),
  ];
}

function total(families: readonly FamilyReport[]): FamilyReport {
  const rejected: Record<string, number> = {};
  for (const family of families) {
    for (const [status, count] of Object.entries(family.rejected)) {
      rejected[status] = (rejected[status] ?? 0) + count;
    }
  }
  return {
    name: 'total',
    attempts: families.reduce((sum, { attempts }) => sum + attempts, 0),
    accepted: families.reduce((sum, { accepted }) => sum + accepted, 0),
    wrong: families.flatMap(({ wrong }) => wrong),
    rejected,
    events: [],
    optionalEvents: [],
  };
}

/** Rows with columns of equal width. */
function align(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('   ')
      .trimEnd(),
  );
}
