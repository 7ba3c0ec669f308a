import { PAYLOAD_MARKER, SECRETS } from './webhook-requests.ts';
import type { Round } from './round.ts';

/** Limits of a round. The limits of latency and busy responses depend on the machine and can be turned off. */
export const LIMITS = {
  rssGrowthMb: 150,
  p99Ms: 250,
  /** Maximum share of the valid requests that the application rejects as busy at first. */
  busy: 0.05,
  linesPerCodeAndMinute: 20,
} as const;

/** Texts that must not be in the log: secrets, tokens, bodies, signatures. */
const FORBIDDEN: readonly (string | RegExp)[] = [
  ...SECRETS,
  PAYLOAD_MARKER,
  /sha512=[0-9a-f]{16}/i,
  /\b[0-9a-f]{128}\b/i,
  /Basic [A-Za-z0-9+/]{8}/,
];

/** A line for each fault that a round found; empty if it passed. */
export function faults(round: Round, checkLatency: boolean): string[] {
  const { sender } = round;
  const found = [...wrongResults(round)];
  const check = (passed: boolean, fault: string): void => void (passed || found.push(fault));
  check(sender.sent > 0, 'no valid request was sent');
  const missing = sender.sent - sender.accepted;
  check(missing === 0, `${missing} of ${sender.sent} valid requests never got the response 200`);
  check(
    !checkLatency || sender.p99Ms < LIMITS.p99Ms,
    `p99 of valid requests was ${sender.p99Ms.toFixed(0)} ms (limit ${LIMITS.p99Ms} ms)`,
  );
  check(
    !checkLatency || sender.busy < sender.sent * LIMITS.busy,
    `valid requests were rejected as busy ${sender.busy} times (limit ${LIMITS.busy * 100}% of ${sender.sent})`,
  );
  for (const which of ['receiver', 'caller'] as const) {
    const { rssGrowthMb, unhandledRejections } = round[which];
    check(
      rssGrowthMb < LIMITS.rssGrowthMb,
      `resident memory of the ${which} grew by ${rssGrowthMb.toFixed(0)} MB (limit ${LIMITS.rssGrowthMb} MB)`,
    );
    check(
      unhandledRejections === 0,
      `the ${which} had ${unhandledRejections} unhandled promise rejections`,
    );
  }
  for (const family of round.families) {
    check(family.attempts > 0, `${family.name}: no attempt was made`);
  }
  const most = LIMITS.linesPerCodeAndMinute * Math.max(1, round.seconds / 60);
  for (const [code, count] of linesByCode(round.log)) {
    check(count < most, `${count} log lines of one kind (limit ${most.toFixed(0)}): ${code}`);
  }
  for (const text of FORBIDDEN) {
    const at = typeof text === 'string' ? round.log.indexOf(text) : round.log.search(text);
    check(at < 0, `the log contains ${String(text)}, which is a secret or part of a payload`);
  }
  return found;
}

/** Wrong responses, and events that were lost, handled twice or handled without a valid request. */
export function wrongResults({ families, sender, receiver }: Round): string[] {
  const wrong = [
    ...sender.wrong,
    ...families.flatMap((family) => family.wrong.map((text) => `${family.name}: ${text}`)),
  ];
  const expected = new Set([...sender.events, ...families.flatMap(({ events }) => events)]);
  const optional = new Set(families.flatMap(({ optionalEvents }) => optionalEvents));
  const { handled } = receiver;
  for (const event of expected) {
    if (!Object.hasOwn(handled, event)) wrong.push(`event ${event} was accepted but not handled`);
  }
  for (const [event, times] of Object.entries(handled)) {
    if (times > 1) wrong.push(`event ${event} was handled ${times} times`);
    if (!expected.has(event) && !optional.has(event)) {
      wrong.push(`event ${event} was handled, but no valid request with it was sent`);
    }
  }
  return wrong;
}

/** Number of log lines by error code, or by the first 60 characters without numbers. */
export function linesByCode(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of log.split('\n')) {
    if (line.trim() === '') continue;
    const message = line.replace(/^\[Nest\].*?(LOG|WARN|ERROR|FATAL|DEBUG|VERBOSE) /, '$1 ');
    const code = /\b([a-z]+(?:_[a-z]+)+)\b/.exec(message)?.[1];
    const kind = /^\s+at /.test(line) ? 'stack trace' : message.replace(/\d+/g, '0').slice(0, 60);
    const key = code ?? kind;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
