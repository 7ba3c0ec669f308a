import type { CollectedSpan } from './telemetry-collector.js';

/** A span, with the spans that are children of this span or are linked to this span. */
export interface TraceNode {
  readonly span: CollectedSpan;
  /** Whether the span is linked to the span above it in the tree. Otherwise the span is a child of that span. */
  readonly linked: boolean;
  /** The spans that are children of this span or linked to it, in the order of their start. */
  readonly below: readonly TraceNode[];
}

/** The name of the span attribute that contains the id of a transaction. */
const TRANSACTION = 'messaging.message.conversation_id';

/**
 * The spans that a payment must have, from the checkout to the ledger. Each entry lists the titles of spans: each span
 * in the list is a child of the span before it, or linked to it.
 */
const EXPECTED_PATHS: readonly (readonly string[])[] = [
  ['POST /api/orders', 'POST /emulator/checkout-invoices'],
  [
    'POST /webhooks/payments',
    'receive transaction.completed',
    'process transaction.completed',
    'GET /v1/transactions/{id}',
  ],
  [
    'POST /webhooks/payments',
    'receive transaction.completed',
    'process transaction.completed',
    'record in ledger',
  ],
];

/**
 * Returns the traces of a payment as trees, in the order of their start. A trace belongs to the payment if a span of
 * the trace has the id of the transaction. All traces that are linked to these traces belong to the payment, too. A
 * linked trace is below the span to which it is linked.
 */
export function paymentTraces(spans: readonly CollectedSpan[], transactionId: string): TraceNode[] {
  const found = spansOf(spans, transactionId).toSorted((a, b) => a.startMs - b.startMs);
  const ids = new Set(found.map(({ spanId }) => spanId));
  const spanAbove = ({ parentSpanId, linkedSpanIds }: CollectedSpan): string | undefined =>
    [parentSpanId ?? '', ...linkedSpanIds].find((id) => ids.has(id));
  const nodesBelow = (id: string | undefined): TraceNode[] =>
    found
      .filter((span) => spanAbove(span) === id)
      .map((span) => ({
        span,
        linked: id !== undefined && id !== span.parentSpanId,
        below: nodesBelow(span.spanId),
      }));
  return nodesBelow(undefined);
}

/**
 * Returns the spans of all traces in which a span has the id of the transaction, and of all traces that are linked to
 * these traces.
 */
function spansOf(spans: readonly CollectedSpan[], transactionId: string): CollectedSpan[] {
  const sameTraces = (some: readonly CollectedSpan[]): CollectedSpan[] => {
    const traceIds = new Set(some.map(({ traceId }) => traceId));
    return spans.filter(({ traceId }) => traceIds.has(traceId));
  };
  const withId = sameTraces(
    spans.filter(({ attributes }) => attributes[TRANSACTION] === transactionId),
  );
  const ids = new Set(withId.map(({ spanId }) => spanId));
  const linked = spans.filter(({ linkedSpanIds }) => linkedSpanIds.some((id) => ids.has(id)));
  return sameTraces([...withId, ...linked]);
}

/** Returns the name of a span, with the path of the request if it is the span of an HTTP server. */
export function titleOf({ kind, name, attributes }: CollectedSpan): string {
  const path = attributes['url.path'];
  return kind === 'SERVER' && typeof path === 'string' && !name.includes(path)
    ? `${name} ${path}`
    : name;
}

/** Returns the titles of the expected spans that the traces of a payment do not contain. */
export function missingSpans(traces: readonly TraceNode[]): string[] {
  const missing = EXPECTED_PATHS.flatMap((path) => {
    let nodes = traces;
    for (const title of path) {
      const next = nodes.filter(({ span }) => titleOf(span) === title);
      if (next.length === 0) return [title];
      nodes = next.flatMap(({ below }) => below);
    }
    return [];
  });
  return [...new Set(missing)];
}
