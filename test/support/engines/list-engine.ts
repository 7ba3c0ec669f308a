import type {
  EngineMessage,
  EventRelay,
  MessageSource,
  StoreMessage,
  StoreOutcome,
  TakenMessage,
} from 'nestjs-payments';

/** An engine in this process, as an application could write one: it keeps every message, for any number of services. */
export class ListEngine {
  /** Every message that was accepted, copies included. */
  readonly messages: EngineMessage[] = [];
  /** Thrown by `publish`; `null` to accept messages. */
  failure: Error | null = null;
  /** Whether `publish` accepts the message before it throws {@link failure}, as if the answer was lost. */
  losesAnswers = false;
  readonly #services = new Set<ListSource>();

  /** The option `relay`. */
  readonly relay: EventRelay = {
    publish: async (message) => {
      if (this.failure === null || this.losesAnswers) this.add(message);
      if (this.failure !== null) throw this.failure;
    },
  };

  /** Creates the option `source` of a service, which takes every message that is added from now on. */
  source(options: Pick<MessageSource, 'verify'> = {}): ListSource {
    const source = new ListSource(options.verify);
    this.#services.add(source);
    return source;
  }

  add(message: EngineMessage): void {
    this.messages.push(message);
    for (const service of this.#services) service.deliver({ ...message, deliveries: 1 });
  }
}

/** The messages of one service. */
export class ListSource implements MessageSource {
  /** What the module decided, by the id of the message, once for each delivery. */
  readonly outcomes: { readonly id: string | undefined; readonly outcome: StoreOutcome }[] = [];
  /** Thrown by the next call of `consume`. */
  failure: Error | null = null;
  /** How often `consume` was called. */
  calls = 0;
  readonly verify?: boolean;
  readonly #waiting: TakenMessage[] = [];
  #arrived: () => void = () => {};

  constructor(verify?: boolean) {
    if (verify !== undefined) this.verify = verify;
  }

  deliver(message: TakenMessage): void {
    this.#waiting.push(message);
    this.#arrived();
  }

  async consume(store: StoreMessage, { signal }: { signal: AbortSignal }): Promise<void> {
    this.calls += 1;
    const { failure } = this;
    this.failure = null;
    if (failure !== null) throw failure;
    while (!signal.aborted) {
      const message = this.#waiting.shift();
      if (message === undefined) {
        await new Promise<void>((resolve) => {
          this.#arrived = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
        continue;
      }
      const outcome = await store(message);
      this.outcomes.push({ id: message.attributes['id'], outcome });
      if (outcome.action === 'retry') {
        // Lets the test run between two deliveries.
        await new Promise((resolve) => setImmediate(resolve));
        this.deliver({ ...message, deliveries: message.deliveries + 1 });
      }
    }
  }
}
