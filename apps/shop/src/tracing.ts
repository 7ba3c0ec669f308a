import { SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';

/** The name of the span attribute in which `nestjs-payments` stores the id of a transaction. */
const TRANSACTION = 'messaging.message.conversation_id';

/**
 * Calls `work` in a span of the shop. The new span is a child of the active span. If a handler calls this function, the
 * active span is the span of the attempt. If no SDK of OpenTelemetry runs in the process, no span is recorded.
 */
export function inSpan<T>(
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> {
  return trace.getTracer('shop').startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Adds the id of a transaction to the active span, so that a search for the transaction finds its trace. */
export function traceTransaction(transactionId: string): void {
  trace.getActiveSpan()?.setAttribute(TRANSACTION, transactionId);
}
