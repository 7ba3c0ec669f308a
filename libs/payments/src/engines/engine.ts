import type { PaymentEventSource } from '../events/payment-event.js';

/**
 * A message with one event, as the gateway hands it over to an engine such as JetStream, and as a worker service takes
 * it from the engine. Neither a log line nor an error of an adapter may contain the body or the attributes.
 */
export interface EngineMessage {
  /**
   * The company and the id of the event, joined by a slash. Engines that ignore duplicates compare this id.
   *
   * @example 'default/6b1f9a52-6c5e-4f0e-9d1e-3a4c9f8f1d20'
   */
  readonly id: string;
  /**
   * The company and the transaction of the event, joined by a slash; for an event without a transaction, the same as
   * `id`. Events with the same key keep their order if the engine can keep it.
   */
  readonly key: string;
  /** The attributes of the event; see {@link EngineAttributes}. */
  readonly attributes: EngineAttributes;
  /** The body of the event, byte for byte as it was signed. */
  readonly body: Uint8Array;
}

/**
 * The attributes of an event as CloudEvents 1.0 defines them, and the extension attributes of this module. An adapter
 * writes each attribute as a header (binary mode) whose name begins with the prefix of the engine's CloudEvents binding,
 * such as `ce-` or `ce_`; only `datacontenttype` is the engine's own content type. Names are lower-case letters.
 */
export type EngineAttributes = Readonly<Record<string, string>> & {
  readonly specversion: '1.0';
  /** Id of the event. */
  readonly id: string;
  /** `/payments/` and the company. */
  readonly source: string;
  /** Type of the event, such as `transaction.completed`. */
  readonly type: string;
  /** Time of the event, ISO 8601 in UTC. */
  readonly time: string;
  readonly datacontenttype: 'application/json';
  /** Extension: id of the company whose secret signed the body. */
  readonly company: string;
  /** Extension: the signature of the body, as in the header `X-Webhook-Signature`. */
  readonly signature: string;
  /** Extension: how the gateway received the event, `webhook` or `poll`. */
  readonly origin: Exclude<PaymentEventSource, 'overdue'>;
  /** Extension: the same as {@link EngineMessage.key}. */
  readonly partitionkey: string;
  // `subject` is the id of the transaction, and `traceparent` the trace of the handover; both may be missing.
};

/** The options of `EventRelay.publish` and `MessageSource.consume`. */
export interface EngineCall {
  /** Aborted when the result is not needed any more: the attempt took too long, or the application closes. */
  readonly signal: AbortSignal;
}

/** The methods that a relay and a source have in common. */
interface EngineConnection {
  /**
   * Connects to the engine and checks its settings, or creates them. Called once, at boot. If the engine cannot be
   * reached, reject with any error: the application starts nevertheless, and later calls connect.
   *
   * @throws PaymentsError `engine_unsafe` if a setting of the engine loses events. The application does not start.
   */
  open?(): Promise<void>;
  /**
   * Reads the state of the engine, for metrics and health, one read at a time. Connects if there is no connection. Rejects
   * if the engine does not answer. The module waits at most one second for the result.
   */
  status?(): Promise<EngineStatus>;
  /**
   * Closes the connection. Called once: when all calls of the other functions have ended, or when `worker.drainMs` has
   * passed. Calls that are still running must end when this method is called.
   */
  close?(): Promise<void>;
}

/** What an engine reports about the messages of a worker service. A relay reports only that it is connected. */
export interface EngineStatus {
  /**
   * Number of messages that wait at the engine for the worker service, including messages that wait for a retry. Some
   * engines also count the messages that are being stored.
   */
  readonly lag?: number;
  /** Number of messages of the worker service at the engine's place for dead letters. */
  readonly deadLetters?: number;
}

/**
 * Hands events over to an engine; the option `relay` of the gateway. Each adapter package exports a function that
 * creates a relay, such as `jetStream()`.
 *
 * @example
 * ```ts
 * const relay: EventRelay = {
 *   publish: async (message, { signal }) => {
 *     await sqs.send(new SendMessageCommand(toCommand(message)), { abortSignal: signal });
 *   },
 * };
 * ```
 */
export interface EventRelay extends EngineConnection {
  /**
   * Publishes a message. Resolves once the engine has accepted the message durably, and rejects otherwise; the module
   * then publishes the message again, by the retry schedule of the relay. After the signal is aborted, the call must
   * publish nothing, and the module does not wait for its end.
   */
  publish(message: EngineMessage, options: EngineCall): Promise<void>;
}

/** Takes events from an engine; the option `source` of a worker service. */
export interface MessageSource extends EngineConnection {
  /**
   * Whether the module checks the signature of each message. `false` trusts everyone who can write to the engine.
   * Default `true`.
   */
  readonly verify?: boolean;
  /**
   * Takes messages from the engine and calls `store` for each. Then does with the message what the result of `store`
   * says; see {@link StoreOutcome}. Limits how many calls of `store` are in progress. When the signal is aborted, takes
   * no further message, waits for the calls in progress, and resolves. Rejects if the connection is lost; the module
   * then calls this method again.
   */
  consume(store: StoreMessage, options: EngineCall): Promise<void>;
}

/** A message as a {@link MessageSource} takes it from its engine. */
export interface TakenMessage extends Pick<EngineMessage, 'body'> {
  /** The attributes that the message contains. The module checks them. */
  readonly attributes: Readonly<Record<string, string | undefined>>;
  /** How often the engine has delivered the message, including this time; at least 1. */
  readonly deliveries: number;
}

/** Stores the event of a message in the inbox of this process. Never rejects. */
export type StoreMessage = (message: TakenMessage) => Promise<StoreOutcome>;

/** What a {@link MessageSource} must do with a message. */
export type StoreOutcome =
  /** The event is stored, or was stored before: acknowledge the message. */
  | { readonly action: 'acknowledge' }
  /**
   * The event could not be stored: let the engine deliver the message again after this time. The number of deliveries
   * has no limit.
   */
  | { readonly action: 'retry'; readonly afterMs: number }
  /**
   * The message will never be stored: move it to the engine's place for dead letters, with the code, then acknowledge
   * it. The code is a `PaymentsErrorCode`.
   */
  | { readonly action: 'reject'; readonly code: string };
