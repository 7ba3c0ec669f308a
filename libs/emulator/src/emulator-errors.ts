/** The reason why the emulator rejected an operation: one of these four codes. */
export type EmulatorErrorCode =
  /**
   * There is no company, transaction or delivery with this id. The id never existed, or the emulator removed the
   * transaction or the delivery to keep a limit.
   */
  | 'not_found'
  /**
   * The current state does not allow the operation. For example, the id of a new company is in use, or the transaction
   * is already complete.
   */
  | 'conflict'
  /** The operation would exceed a limit that an option sets, such as `maxCompanies`. */
  | 'limit_reached'
  /** The emulator has been closed. */
  | 'closed';

/** An error about an operation that the emulator rejected although the input was valid. */
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
 * An error about invalid input of an operation. The error is a `TypeError`, because invalid input is a mistake of the
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
