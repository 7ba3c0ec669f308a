import { integerOption } from '../../payments.validation.js';
import type { InboxDefinition } from '../store.contract.js';
import { MemoryStore } from './memory.store.js';

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /**
   * How many events are kept at the most, finished ones included. The oldest finished ones make room; where
   * all are unfinished, a delivery is answered 503. 1 to 1,000,000. Default 10,000.
   */
  maxEvents?: number;
  /** How many bytes of bodies are kept at the most. 1 KiB to 16 GiB. Default 64 MiB. */
  maxBytes?: number;
  /**
   * For how many milliseconds a finished event is remembered, to know its duplicates. 1,000 to 2,592,000,000
   * (30 days). Default 86,400,000 (a day).
   */
  retentionMs?: number;
}

/**
 * Keeps events in this process's memory: nothing to set up, nothing left after a restart. What makes it safe
 * all the same is that the sender is answered 2xx only once every handler has succeeded; until then the
 * delivery is the sender's to repeat. For tests, development, and applications whose handlers are quick and
 * idempotent.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): InboxDefinition {
  const limits = Object.freeze({
    maxEvents: integerOption('memoryInbox maxEvents', options.maxEvents, {
      default: 10_000,
      min: 1,
      max: 1_000_000,
      unit: 'events',
    }),
    maxBytes: integerOption('memoryInbox maxBytes', options.maxBytes, {
      default: 64 * 1024 ** 2,
      min: 1024,
      max: 16 * 1024 ** 3,
      unit: 'bytes',
    }),
    retentionMs: integerOption('memoryInbox retentionMs', options.retentionMs, {
      default: 86_400_000,
      min: 1000,
      max: 30 * 86_400_000,
      unit: 'milliseconds',
    }),
  });
  return { name: 'memory', create: (runtime) => new MemoryStore(limits, runtime) };
}
