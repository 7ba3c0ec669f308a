import { titleOf } from './payment-trace.js';
import type { TraceNode } from './payment-trace.js';
import type { CollectedSpan } from './telemetry-collector.js';

/** The attributes to print. All other attributes are omitted, because an application may set any attribute. */
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

/** The widths of the columns, in characters. A line has 94 characters. */
const SPAN_WIDTH = 52;
const TRACE_WIDTH = 10;
const PROCESS_WIDTH = 8;
const TIME_WIDTH = 12;
const LINE_WIDTH = SPAN_WIDTH + TRACE_WIDTH + PROCESS_WIDTH + 2 * TIME_WIDTH;

/**
 * Formats traces as a table with trees in the first column. Each span has a line, and the attributes of the span are
 * below this line.
 */
export function formatTraces(traces: readonly TraceNode[]): string[] {
  const start = Math.min(...traces.map(({ span }) => span.startMs));
  return [
    row('span', 'trace', 'process', 'start', 'duration'),
    ...traces.flatMap((node) => linesOf(node, start, '', '')),
  ];
}

/**
 * Returns the lines of a span and of the spans below it. The line of the span starts with `first`, and all further
 * lines start with `next`.
 */
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

/** Returns the lines with the attributes of a span. Each line contains as many attributes as fit into its width. */
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
