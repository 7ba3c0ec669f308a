/** The reason why the emulator rejected a control: one of these four codes. */
export type EmulatorErrorCode =
  /** There is no company, transaction or delivery with this id: it never existed, or a bounded store removed it. */
  | 'not_found'
  /**
   * The current state does not allow the control. For example, the id is taken, or the transaction is already complete.
   */
  | 'conflict'
  /** A limit set by the options is reached. */
  | 'limit_reached'
  /** The emulator has been closed. */
  | 'closed';

/** An error about a control that the emulator could not execute although its input is valid. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError';

  constructor(
    /** The reason, as a stable code for programs. */
    readonly code: EmulatorErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/**
 * An error about the invalid input of a control. The error is a `TypeError`, because invalid input is a mistake of the
 * caller.
 */
export class EmulatorInputError extends TypeError {
  override readonly name = 'EmulatorInputError';
  readonly code = 'invalid_input';

  constructor(
    /**
     * One message per invalid field. Each message names the field and the values that the field accepts, with units.
     */
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
