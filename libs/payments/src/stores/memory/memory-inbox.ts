import { ModuleLogger } from '../../errors/module-log.js';
import { checkFields, flag, whole } from '../../errors/option-checks.js';
import type { OptionChecks } from '../../errors/option-checks.js';
import type { InboxDefinition } from '../../inbox/store/inbox-store.js';
import { memoryStore } from './memory-store.js';

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /**
   * Maximum number of events to keep, finished ones included. If the inbox is full, a new event replaces the event that
   * finished first; if no event has finished, the response to the webhook request is 503. Expectations have a
   * separate limit of the same number. 1 to 1,000,000. Default 10,000.
   */
  maxEvents?: number;
  /** Maximum number of bytes of bodies to keep. 1 KiB to 16 GiB. Default 64 MiB. */
  maxBytes?: number;
  /**
   * The inbox forgets an event so many milliseconds after the event has finished. Until then it recognises duplicates. An
   * event has finished if all its deliveries are done, dead or skipped: dead letters are forgotten too.
   * 1,000 to 2,592,000,000 (30 days). Default 86,400,000 (a day).
   */
  retainEventsMs?: number;
  /** Whether to log no warning about this inbox under `NODE_ENV=production`. Default `false`. */
  acceptInProduction?: boolean;
}

const WARNING =
  'The memory inbox is in use under NODE_ENV=production. It keeps events only in this process. A restart loses ' +
  'them: the handlers run again for a copy of an event that was handled before, and a delivery that waits for a ' +
  'retry is lost unless the sender repeats the event. Several processes do not recognise duplicates of each other. ' +
  'Durable inboxes are sqliteInbox() for one machine and postgresInbox() for any number. If the memory inbox is ' +
  'enough, memoryInbox({ acceptInProduction: true }) turns this warning off.';

/**
 * Keeps events in the memory of this process. It needs no set-up, and a restart loses everything. No payment
 * is lost by that: the sender gets a 2xx response only after every handler has succeeded, and repeats the event
 * otherwise. But the handlers run again for a copy of an event from before the restart, even if an attacker replays it.
 * Events of any age are handled unless `webhook.maxAgeMs` is set, because a late event is likelier than a replay.
 *
 * Use it for tests, for development, and for applications whose handlers are quick and idempotent. Under
 * `NODE_ENV=production` it logs one warning at boot.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): InboxDefinition {
  const { acceptInProduction, ...limits } = checkFields('memoryInbox', options, {
    maxEvents: whole({ default: 10_000, min: 1, max: 1_000_000, unit: 'events' }),
    maxBytes: whole({ default: 64 * 1024 ** 2, min: 1024, max: 16 * 1024 ** 3, unit: 'bytes' }),
    retainEventsMs: whole({
      default: 86_400_000,
      min: 1000,
      max: 30 * 86_400_000,
      unit: 'milliseconds',
    }),
    acceptInProduction: flag(false),
  } satisfies OptionChecks<MemoryInboxOptions>);
  return {
    name: 'memory',
    create: (runtime) => {
      if (runtime.environment === 'production' && !acceptInProduction) {
        new ModuleLogger('PaymentInbox').warn(WARNING);
      }
      return memoryStore(limits, runtime);
    },
  };
}
