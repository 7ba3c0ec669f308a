import { Logger } from '@nestjs/common';
import { integerOption, optionsInvalid, shown } from '../../errors/options-invalid.js';
import type { InboxDefinition } from '../store/inbox-store.js';
import { MemoryStore } from './memory-store.js';

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /**
   * Maximum number of events to keep, finished ones included. The oldest finished event makes room for a new
   * one; if no event is finished, the delivery is answered 503. 1 to 1,000,000. Default 10,000.
   */
  maxEvents?: number;
  /** Maximum number of bytes of bodies to keep. 1 KiB to 16 GiB. Default 64 MiB. */
  maxBytes?: number;
  /**
   * How many milliseconds a finished event is remembered, to recognise duplicates. 1,000 to 2,592,000,000
   * (30 days). Default 86,400,000 (a day).
   */
  retentionMs?: number;
  /** Whether to log no warning about this inbox under `NODE_ENV=production`. Default `false`. */
  acceptInProduction?: boolean;
}

const WARNING =
  'The memory inbox is in use under NODE_ENV=production. It keeps events in this process only. A restart forgets ' +
  'them: a copy of an event that was handled before runs its handlers again, and what was waiting for a retry ' +
  'is lost unless the sender repeats it. Several processes do not recognise duplicates of each other. Durable ' +
  'inboxes are sqliteInbox() for one machine and postgresInbox() for any number. If the memory inbox is ' +
  'enough, memoryInbox({ acceptInProduction: true }) turns this warning off.';

/**
 * Keeps events in the memory of this process. It needs no set-up, and a restart forgets everything. No payment
 * is lost by that: the sender is answered 2xx only after every handler has succeeded, and repeats the delivery
 * otherwise. But a copy of an event from before the restart is handled again, a replay by an attacker included: an event
 * of any age is handled unless `webhook.maxAgeMs` is set, because a late delivery is likelier than a replay.
 *
 * Use it for tests, for development, and for applications whose handlers are quick and idempotent. Under
 * `NODE_ENV=production` it logs one warning at boot.
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
  const { acceptInProduction = false } = options;
  if (typeof acceptInProduction !== 'boolean') {
    throw optionsInvalid(
      `"memoryInbox acceptInProduction" must be true or false; it is ${shown(acceptInProduction)}.`,
    );
  }
  return {
    name: 'memory',
    create: (runtime) => {
      if (runtime.environment === 'production' && !acceptInProduction) {
        new Logger('PaymentInbox').warn(WARNING);
      }
      return new MemoryStore(limits, runtime);
    },
  };
}
