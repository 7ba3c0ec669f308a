/** Why the emulator refused a control. The list is closed. */
export type EmulatorErrorCode =
  /** No company, transaction or delivery of that id: it never was, or a bounded store let it go. */
  | 'not_found'
  /** The state does not allow it: an id that is taken, a transaction that is complete already. */
  | 'conflict'
  /** A bound of the options is reached. */
  | 'limit_reached'
  /** The emulator has been closed. */
  | 'closed';

/** A control that could not be carried out, although it was well formed. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError';

  constructor(
    /** The reason, for code to branch on. */
    readonly code: EmulatorErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** A control that was not well formed: the caller's own mistake, and so a `TypeError`. */
export class EmulatorInputError extends TypeError {
  override readonly name = 'EmulatorInputError';
  readonly code = 'invalid_input';

  constructor(
    /** One line for each mistake: the field, what it takes with its unit, and what it got. */
    readonly problems: readonly string[],
  ) {
    super(problems.join('; '));
  }
}

/** What an error says, whichever realm it was made in (`instanceof` fails between two). */
export function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message;
  return typeof message === 'string' ? message : String(error);
}
