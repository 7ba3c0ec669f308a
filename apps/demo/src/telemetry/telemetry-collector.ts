import { fileURLToPath } from 'node:url';
import type { FinishedSpan, TelemetryMessage } from './finished-span.js';

/**
 * Maximum number of spans that the collector keeps. The collector removes the oldest spans, because the demo may run
 * for a long time.
 */
const MAX_SPANS = 5000;

/** A span with the name of its process, for example `shop 1`. */
export type CollectedSpan = FinishedSpan & { readonly process: string };

/** The connection between a shop and the collector of its telemetry. */
export interface ShopTelemetry {
  /** The file that Node must load before the shop. */
  readonly preload: string;
  /** A function that takes each message that the process of the shop sends. */
  readonly receive: (message: unknown) => void;
}

/** Collects the spans of all shops, and the addresses of their metrics. */
export class TelemetryCollector {
  /** The newest spans, in the order of their arrival. */
  readonly spans: CollectedSpan[] = [];
  readonly #metricsUrls = new Map<string, string>();

  /** The address of the metrics of each process, by the name of the process. */
  get metricsUrls(): [process: string, url: string][] {
    return [...this.#metricsUrls].toSorted(([a], [b]) => a.localeCompare(b));
  }

  /**
   * Returns the connection to a shop. If the shop is restarted, the new address of its metrics replaces the old
   * address.
   */
  of(process: string): ShopTelemetry {
    return {
      preload: fileURLToPath(new URL('shop-telemetry.js', import.meta.url)),
      receive: (message) => this.#add(process, message as TelemetryMessage),
    };
  }

  #add(process: string, message: TelemetryMessage): void {
    if ('metricsUrl' in message) {
      this.#metricsUrls.set(process, message.metricsUrl);
    } else {
      this.spans.push({ ...message.span, process });
      if (this.spans.length > MAX_SPANS) this.spans.shift();
    }
  }
}
