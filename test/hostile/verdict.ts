import { PAYLOAD_MARKER, SECRETS } from './deliveries.ts';
import type { Round } from './round.ts';

/** Bars of a round. Times depend on the machine, so they can be left out. */
export const BARS = {
  rssGrowthMb: 150,
  p99Ms: 250,
  /** Share of the valid deliveries that may be refused as busy at first. */
  busy: 0.05,
  linesPerCodeAndMinute: 20,
} as const;

/** What must not be in the log: secrets, tokens, bodies, signatures. */
const FORBIDDEN: readonly (string | RegExp)[] = [
  ...SECRETS,
  PAYLOAD_MARKER,
  /sha512=[0-9a-f]{16}/i,
  /\b[0-9a-f]{128}\b/i,
  /Basic [A-Za-z0-9+/]{8}/,
];

/** Everything that a round did wrong, a line each; none if it passed. */
export function faults(round: Round, latencyBar: boolean): string[] {
  const { sender } = round;
  const found = [...handledWrongly(round)];
  const check = (passed: boolean, fault: string): void => void (passed || found.push(fault));
  check(sender.sent > 0, 'no valid delivery was sent');
  const missing = sender.sent - sender.accepted;
  check(missing === 0, `${missing} of ${sender.sent} valid deliveries were not answered 200`);
  check(
    !latencyBar || sender.p99Ms < BARS.p99Ms,
    `p99 of valid deliveries was ${sender.p99Ms.toFixed(0)} ms (bar ${BARS.p99Ms} ms)`,
  );
  check(
    !latencyBar || sender.busy < sender.sent * BARS.busy,
    `valid deliveries were refused as busy ${sender.busy} times (bar ${BARS.busy * 100}% of ${sender.sent})`,
  );
  for (const which of ['receiver', 'caller'] as const) {
    const { rssGrowthMb, unhandledRejections } = round[which];
    check(
      rssGrowthMb < BARS.rssGrowthMb,
      `resident memory of the ${which} grew by ${rssGrowthMb.toFixed(0)} MB (bar ${BARS.rssGrowthMb} MB)`,
    );
    check(
      unhandledRejections === 0,
      `the ${which} left ${unhandledRejections} promise rejections unhandled`,
    );
  }
  for (const family of round.families) {
    check(family.attempts > 0, `${family.name}: nothing was tried`);
  }
  const most = BARS.linesPerCodeAndMinute * Math.max(1, round.seconds / 60);
  for (const [code, count] of linesByCode(round.log)) {
    check(count < most, `${count} log lines of one kind (bar ${most.toFixed(0)}): ${code}`);
  }
  for (const text of FORBIDDEN) {
    const at = typeof text === 'string' ? round.log.indexOf(text) : round.log.search(text);
    check(at < 0, `the log contains ${String(text)}, which is secret or payload`);
  }
  return found;
}

/** Answers that were wrong, and events that were lost, handled twice or invented. */
export function handledWrongly({ families, sender, receiver }: Round): string[] {
  const wrong = [
    ...sender.wrong,
    ...families.flatMap((family) => family.wrong.map((text) => `${family.name}: ${text}`)),
  ];
  const expected = new Set([...sender.events, ...families.flatMap(({ events }) => events)]);
  const optional = new Set(families.flatMap(({ optionalEvents }) => optionalEvents));
  const { handled } = receiver;
  for (const event of expected) {
    if (!Object.hasOwn(handled, event)) wrong.push(`event ${event} was accepted and not handled`);
  }
  for (const [event, times] of Object.entries(handled)) {
    if (times > 1) wrong.push(`event ${event} was handled ${times} times`);
    if (!expected.has(event) && !optional.has(event)) {
      wrong.push(`event ${event} was handled, but no valid delivery of it was sent`);
    }
  }
  return wrong;
}

/** Log lines by error code, or by their beginning without numbers. */
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
