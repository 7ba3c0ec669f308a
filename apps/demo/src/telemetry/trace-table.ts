import { titleOf } from './payment-trace.js';
import type { TraceNode } from './payment-trace.js';
import type { CollectedSpan } from './telemetry-collector.js';

/** The attributes to print. All others are left out: an application may set any attribute. */
const PRINTED = [
  'messaging.message.conversation_id',
  'http.response.status_code',
  'messaging.destination.subscription.name',
  'payments.source',
  'payments.status',
  'payments.attempt',
  'payments.outcome',
  'payments.reference',
  'db.system.name',
  'error.type',
] as const;

/** The widths of a line: 94 characters together. */
const SPAN_WIDTH = 52;
const TRACE_WIDTH = 10;
const PROCESS_WIDTH = 8;
const TIME_WIDTH = 12;
const LINE_WIDTH = SPAN_WIDTH + TRACE_WIDTH + PROCESS_WIDTH + 2 * TIME_WIDTH;

/** Formats traces as a table with trees in its first column: a line per span, and below it its attributes. */
export function formatTraces(traces: readonly TraceNode[]): string[] {
  const start = Math.min(...traces.map(({ span }) => span.startMs));
  return [
    row('span', 'trace', 'process', 'start', 'duration'),
    ...traces.flatMap((node) => linesOf(node, start, '', '')),
  ];
}

/** The lines of a span and of those below. `first` begins the line of the span, and `next` all lines after it. */
function linesOf({ span, below }: TraceNode, start: number, first: string, next: string): string[] {
  const bar = below.length > 0 ? '│  ' : '   ';
  return [
    row(
      first + titleOf(span),
      span.traceId.slice(0, 8),
      span.process,
      `+${(span.startMs - start).toFixed(0)} ms`,
      `${span.durationMs.toFixed(1)} ms`,
    ),
    ...attributeLines(span, next + bar),
    ...below.flatMap((node, index) => {
      const line = node.linked ? '╌' : '─';
      const last = index === below.length - 1;
      return linesOf(
        node,
        start,
        `${next}${last ? '└' : '├'}${line} `,
        next + (last ? '   ' : '│  '),
      );
    }),
  ];
}

/** The attributes of a span, as many on a line as fit. */
function attributeLines({ attributes, failed }: CollectedSpan, indent: string): string[] {
  const texts = PRINTED.filter((name) => attributes[name] !== undefined).map(
    (name) => `${name}=${String(attributes[name])}`,
  );
  const lines: string[] = [];
  for (const text of failed ? ['FAILED', ...texts] : texts) {
    const longer = `${lines.at(-1)}  ${text}`;
    if (lines.length > 0 && longer.length <= LINE_WIDTH) lines[lines.length - 1] = longer;
    else lines.push(indent + text);
  }
  return lines;
}

function row(
  span: string,
  trace: string,
  process: string,
  start: string,
  duration: string,
): string {
  return (
    span.padEnd(SPAN_WIDTH) +
    trace.padEnd(TRACE_WIDTH) +
    process.padEnd(PROCESS_WIDTH) +
    start.padStart(TIME_WIDTH) +
    duration.padStart(TIME_WIDTH)
  );
}
