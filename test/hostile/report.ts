import { availableParallelism, loadavg } from 'node:os';
import type { Round } from './round.ts';
import { wrongResults, linesByCode } from './round-failures.ts';

/** Prints the results of a round: a table of the families, and a table of the measured values. */
export function printResults(round: Round): void {
  const { families, sender, receiver, caller, log } = round;
  console.table(
    families.map(({ name, attempts, accepted, wrong, rejected }) => ({
      family: name,
      attempts,
      accepted,
      wrong: wrong.length,
      'rejected by status or code': Object.entries(rejected)
        .toSorted(([, a], [, b]) => b - a)
        .map(([status, count]) => `${status}: ${count}`)
        .join('  '),
    })),
  );
  const ms = (value: number): string => `${value.toFixed(0)} ms`;
  console.table({
    'wrong responses and events': wrongResults(round).length,
    'growth of peak RSS': `${receiver.rssGrowthMb.toFixed(0)} MB`,
    'growth of peak RSS, calling': `${caller.rssGrowthMb.toFixed(0)} MB`,
    'event-loop delay, p99': ms(receiver.loopDelayP99Ms),
    'event-loop delay, p99, calling': ms(caller.loopDelayP99Ms),
    'valid requests sent': sender.sent,
    'valid requests with response 200': sender.accepted,
    'attempts rejected as busy': sender.busy,
    'attempts without a response': sender.disconnected,
    'latency of valid requests': `p50 ${ms(sender.p50Ms)}, p99 ${ms(sender.p99Ms)}`,
    'load of the machine, last minute': `${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores`,
  });
  console.log('Log lines by error code:', Object.fromEntries(linesByCode(log)));
}
