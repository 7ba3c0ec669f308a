import { exponential } from 'nestjs-payments';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A paragraph with the attempts and the waits of the default retry schedule. */
export function defaultRetries(): string {
  const { attempts, waitsMs, jitter } = exponential();
  const meanMs = waitsMs.map((waitMs) => waitMs * (1 + jitter / 2));
  const total = duration(meanMs.reduce((sum, waitMs) => sum + waitMs));
  const first = meanMs.slice(0, 4).map(duration).join(', ');
  return (
    `The default is \`exponential()\`: ${attempts} attempts in about ${total}. The waits are about ` +
    `${first}, …, ${duration(meanMs.at(-1)!)}.`
  );
}

function duration(ms: number): string {
  if (ms < MINUTE_MS) return `${ms / 1000} s`;
  if (ms < HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min`;
  return ms < 2 * DAY_MS ? `${Math.round(ms / HOUR_MS)} h` : `${Math.round(ms / DAY_MS)} days`;
}
