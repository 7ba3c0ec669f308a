import { optionsInvalid } from '../payments.validation.js';

/** The event that a stored body belongs to. */
export interface BodyContext {
  /** Id of the company. */
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
}

/**
 * Encodes the bodies of events before they are stored and decodes them when they are read, for example to encrypt
 * them. It works with every inbox. Authenticate the context together with the body (as additional authenticated data
 * of AES-GCM): otherwise someone who can write to the database can exchange the bodies of two events unnoticed.
 *
 * Both methods may return a promise. They have no time limit of their own: bound calls to a key service.
 *
 * @example
 * ```ts
 * const bodyCodec: BodyCodec = {
 *   encode: (body, { company, id }) => encrypt(body, `${company} ${id}`),
 *   decode: (stored, { company, id }) => decrypt(stored, `${company} ${id}`),
 * };
 * ```
 */
export interface BodyCodec {
  /**
   * Returns the bytes to store. If it fails, nothing is stored and the sender is answered 503.
   *
   * @param body as it was signed, at most `webhook.bodyLimitBytes`; not to be changed
   */
  encode(body: Buffer, context: BodyContext): Uint8Array | Promise<Uint8Array>;
  /**
   * Returns the body that {@link encode} was called with. If it fails, so does the attempt to handle the event. The
   * message of its error is logged and stored, so it must not contain any part of the body.
   */
  decode(stored: Buffer, context: BodyContext): Uint8Array | Promise<Uint8Array>;
}

/** @throws PaymentsError `options_invalid`. */
export function resolveBodyCodec(codec: BodyCodec | undefined): BodyCodec | null {
  if (codec === undefined) return null;
  if (typeof codec?.encode !== 'function' || typeof codec.decode !== 'function') {
    throw optionsInvalid(
      '"bodyCodec" must be an object with the functions encode(body, context) and decode(stored, context).',
    );
  }
  // Functions only: the keys that the application's object may have as fields are not passed on.
  return Object.freeze({
    encode: (body: Buffer, context: BodyContext) => codec.encode(body, context),
    decode: (stored: Buffer, context: BodyContext) => codec.decode(stored, context),
  });
}
