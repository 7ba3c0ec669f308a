import { exponential } from 'nestjs-payments';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A paragraph with the attempts and the waits of the default retry schedule. */
export function defaultRetries(): string {
  const { attempts, waitsMs, jitter } = exponential();
  const meanMs = waitsMs.map((waitMs) => waitMs * (1 + jitter / 2));
  const days = Math.round(meanMs.reduce((sum, waitMs) => sum + waitMs) / DAY_MS);
  const first = meanMs.slice(0, 4).map(duration).join(', ');
  return (
    `The default is \`exponential()\`: ${attempts} attempts in about ${days} days. The waits are about ` +
    `${first}, …, ${duration(meanMs.at(-1)!)}.`
  );
}

function duration(ms: number): string {
  if (ms < MINUTE_MS) return `${ms / 1000} s`;
  return ms < HOUR_MS ? `${Math.round(ms / MINUTE_MS)} min` : `${Math.round(ms / HOUR_MS)} h`;
}
