/** Why the emulator rejected a control. The union is closed. */
export type EmulatorErrorCode =
  /** There is no company, transaction or delivery with this id: it never existed, or a bounded store removed it. */
  | 'not_found'
  /** The state does not allow it: for example, the id is taken, or the transaction is already complete. */
  | 'conflict'
  /** A limit set by the options is reached. */
  | 'limit_reached'
  /** The emulator has been closed. */
  | 'closed';

/** A valid control that could not be executed. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError';

  constructor(
    /** The reason, for programs. */
    readonly code: EmulatorErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** The input of a control is invalid. It is a `TypeError`, because it is a mistake of the caller. */
export class EmulatorInputError extends TypeError {
  override readonly name = 'EmulatorInputError';
  readonly code = 'invalid_input';

  constructor(
    /** One message per mistake: the field, and the values that it accepts, with units. */
    readonly problems: readonly string[],
  ) {
    super(problems.join('; '));
  }
}

/** Returns the message of an error. Does not use `instanceof`, which fails for errors of another realm. */
export function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message;
  return typeof message === 'string' ? message : String(error);
}
