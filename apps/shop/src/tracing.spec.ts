import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { inSpan, traceTransaction } from './tracing.js';

const exporter = new InMemorySpanExporter();
const work = async (): Promise<number> => {
  traceTransaction('t-1');
  return 7;
};

describe('Spans of the shop', () => {
  it('TE-09 without an SDK of OpenTelemetry, inSpan() calls its function and resolves with the result of the function', async () => {
    expect(await inSpan('book', {}, work)).toBe(7);
  });

  describe('with an SDK of OpenTelemetry', () => {
    beforeAll(() => {
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
      const spanProcessors = [new SimpleSpanProcessor({ exporter })];
      trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors }));
    });
    afterAll(() => {
      context.disable();
      trace.disable();
    });

    it('TE-09 inSpan() records a span of its function, and traceTransaction() adds the transaction id to this span', async () => {
      expect(await inSpan('book', { 'db.system.name': 'sqlite' }, work)).toBe(7);
      expect(exporter.getFinishedSpans().at(-1)).toMatchObject({
        name: 'book',
        attributes: { 'db.system.name': 'sqlite', 'messaging.message.conversation_id': 't-1' },
        status: { code: SpanStatusCode.UNSET },
      });
    });

    it('TE-09 inSpan() rejects with the error of its function, and records a span with the status ERROR', async () => {
      const failing = inSpan('book', {}, () => Promise.reject(new Error('database is locked')));
      await expect(failing).rejects.toThrow('database is locked');
      expect(exporter.getFinishedSpans().at(-1)).toMatchObject({
        name: 'book',
        status: { code: SpanStatusCode.ERROR, message: 'Error: database is locked' },
      });
    });
  });
});
