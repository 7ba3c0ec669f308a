/** The JSON body of a delivery (section 2 of the service's page). */
export interface WebhookEvent {
  /** UUID, for de-duplication: every delivery of the event carries it. */
  readonly id: string;
  /** `transaction.completed`, `webhook.test`, or one made up through the emulator's controls. */
  readonly eventType: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}
