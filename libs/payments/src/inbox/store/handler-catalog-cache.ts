import { Inject, Injectable } from '@nestjs/common';
import { matchesPattern, similarType } from '../../events/handler-registry.js';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { INBOX_STORE } from './inbox-store.js';
import type { HandlerCatalog, InboxStore } from './inbox-store.js';

/** For how many event types {@link HandlerCatalogCache.matching} remembers its result. */
const MAX_TYPES = 1000;

/**
 * The handlers that events are delivered to: those of this process, and those that other processes registered. What is
 * cached of the latter may be out of date: `InboxStore.receive` then answers `outdated`, and the receiver calls
 * {@link refresh}.
 */
@Injectable()
export class HandlerCatalogCache {
  /** Before anything is loaded: what an empty store has. */
  #catalog: HandlerCatalog = { version: 0, handlers: [] };
  #refreshing: Promise<HandlerCatalog> | null = null;
  /** Results of {@link matching} with this catalog, by event type. */
  readonly #matching = new Map<string, readonly string[]>();

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    private readonly registry: HandlerRegistry,
  ) {}

  /** The catalog as it was loaded last. */
  get current(): HandlerCatalog {
    return this.#catalog;
  }

  /** Replaces the cached catalog, for example by what {@link InboxStore.register} returned. */
  set(catalog: HandlerCatalog): void {
    this.#catalog = catalog;
    this.#matching.clear();
  }

  /** Loads the catalog; calls at the same time share one query. Rejects if the store is down. */
  refresh(): Promise<HandlerCatalog> {
    this.#refreshing ??= this.#load().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Names of the handlers of an event type: those of this process first, each once. */
  matching(eventType: string): readonly string[] {
    const known = this.#matching.get(eventType);
    if (known !== undefined) return known;
    const elsewhere = this.#catalog.handlers
      .filter(({ patterns }) => patterns.some((pattern) => matchesPattern(pattern, eventType)))
      .map(({ name }) => name);
    const names = [...new Set([...this.registry.matching(eventType), ...elsewhere])];
    if (this.#matching.size === MAX_TYPES) this.#matching.clear();
    this.#matching.set(eventType, names);
    return names;
  }

  /** Whether a handler of another process takes an event type, as far as is known. */
  takesElsewhere(handler: string, eventType: string): boolean {
    const known = this.#catalog.handlers.find(({ name }) => name === handler);
    return known?.patterns.some((pattern) => matchesPattern(pattern, eventType)) ?? false;
  }

  /** Names of all handlers: those of this process first, each once. */
  names(): string[] {
    const elsewhere = this.#catalog.handlers.map(({ name }) => name);
    return [...new Set([...this.registry.names(), ...elsewhere])];
  }

  /** A handled event type that `eventType` is probably a misspelling of. */
  similar(eventType: string): string | undefined {
    const handlers = [...this.registry.all(), ...this.#catalog.handlers];
    return similarType(
      eventType,
      handlers.flatMap(({ patterns }) => patterns),
    );
  }

  async #load(): Promise<HandlerCatalog> {
    this.set(await this.store.catalog());
    return this.#catalog;
  }
}
