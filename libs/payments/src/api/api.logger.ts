/** The one thing the outgoing station asks of a logger. Nest's `Logger` is one. */
export interface ApiLogger {
  warn(message: string): void;
}
