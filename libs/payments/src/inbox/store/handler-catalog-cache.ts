import { Inject, Injectable } from '@nestjs/common';
import {
  HandlerRegistry,
  isReserved,
  matchesPattern,
  similarType,
} from '../../events/handler-registry.js';
import { POLL_HANDLER } from './expectation-store.js';
import { INBOX_STORE } from './inbox-store.js';
import type { EventSource, HandlerCatalog, InboxStore, HandlerDeclaration } from './inbox-store.js';

/** A handler that events are delivered to. */
export interface InboxHandler {
  readonly name: string;
  /** The event types of the handler, as in `@OnPaymentEvent`. */
  readonly patterns: readonly string[];
  /**
   * Whether this process has registered the handler. If not, another process registers the handler, or registered it
   * earlier.
   */
  readonly here: boolean;
  /**
   * When a process first registered the handler in the store, by the store clock; `null` if no process has done so yet.
   */
  readonly firstSeenAt: Date | null;
  /**
   * The last time at which a process with this handler was running, to the accuracy of a heartbeat; `null` if no
   * process has registered the handler in the store yet.
   */
  readonly lastSeenAt: Date | null;
}

/** Maximum number of event types for which {@link HandlerCatalogCache.matching} caches its result. */
const MAX_TYPES = 1000;

/**
 * The handlers that events are delivered to: the handlers of this process, and the handlers that other processes
 * registered in the store. The cached catalog of the store may be out of date: `InboxStore.receive` then returns
 * `outdated`, and the receiver calls {@link refresh}.
 */
@Injectable()
export class HandlerCatalogCache {
  /** Until the first load, the catalog of an empty store. */
  #catalog: HandlerCatalog = { version: 0, handlers: [] };
  #refreshing: Promise<HandlerCatalog> | null = null;
  readonly #matching = new Map<string, readonly string[]>();

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    private readonly registry: HandlerRegistry,
  ) {}

  /** The cached catalog. */
  get current(): HandlerCatalog {
    return this.#catalog;
  }

  set(catalog: HandlerCatalog): void {
    this.#catalog = catalog;
    this.#matching.clear();
  }

  /** Reads the catalog from the store. Concurrent calls share one query. */
  refresh(): Promise<HandlerCatalog> {
    this.#refreshing ??= this.#load().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Returns the names of the handlers that take an event type, each once. The handlers of this process are first. */
  matching(eventType: string, source: EventSource = 'webhook'): readonly string[] {
    if (source === 'webhook' && isReserved(eventType)) return [];
    const known = this.#matching.get(eventType);
    if (known !== undefined) return known;
    const takes = ({ patterns }: HandlerDeclaration): boolean =>
      patterns.some((pattern) => matchesPattern(pattern, eventType));
    const names = namesOf(this.#handlers.filter(takes));
    if (this.#matching.size === MAX_TYPES) this.#matching.clear();
    this.#matching.set(eventType, names);
    return names;
  }

  /** The event types that polls of expected payments can find, in all processes together. */
  get polledTypes(): readonly string[] {
    return this.#catalog.handlers.find(({ name }) => name === POLL_HANDLER)?.patterns ?? [];
  }

  /** Whether the handler takes an event type in any process, according to the cached catalog. */
  takesElsewhere(handler: string, eventType: string): boolean {
    const known = this.#catalog.handlers.find(({ name }) => name === handler);
    return known?.patterns.some((pattern) => matchesPattern(pattern, eventType)) ?? false;
  }

  names(): string[] {
    return namesOf(this.#handlers);
  }

  /** Returns an event type that a handler takes, if `eventType` is probably a misspelling of it. */
  similar(eventType: string): string | undefined {
    return similarType(
      eventType,
      this.#handlers.flatMap(({ patterns }) => patterns),
    );
  }

  /**
   * The handlers of this process, followed by those that other processes registered. Does not contain the handlers of
   * the module itself.
   */
  get #handlers(): HandlerDeclaration[] {
    const registered = this.#catalog.handlers.filter(({ name }) => !isReserved(name));
    return [...this.registry.all(), ...registered];
  }

  async #load(): Promise<HandlerCatalog> {
    this.set(await this.store.catalog());
    return this.#catalog;
  }
}

function namesOf(handlers: readonly HandlerDeclaration[]): string[] {
  return [...new Set(handlers.map(({ name }) => name))];
}
