import { isUint8Array } from 'node:util/types';
import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { PaymentsError, describeError } from '../../errors/payments-error.js';
import { optionsInvalid } from '../../errors/option-checks.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { StoredEvent } from './inbox-store.js';

export const BODY_CODEC = Symbol('PAYMENTS_BODY_CODEC');

/** The event that a stored body belongs to. */
export interface BodyContext {
  /** Id of the company that the event belongs to. */
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
}

/**
 * Encodes the bodies of events before they are stored and decodes them when they are read, for example to encrypt them.
 * A codec works with every inbox. Authenticate the context together with the body, for example as additional
 * authenticated data of AES-GCM. Otherwise someone who can write to the database can exchange the bodies of two events
 * unnoticed.
 *
 * `encode` and `decode` may return a promise. The module sets no time limit for these methods, so set one for calls to
 * a key service.
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
   * Returns the bytes to store. If encoding fails, nothing is stored and the response to the webhook request is 503.
   *
   * @param body the body as it was signed, at most `webhook.bodyLimitBytes`; do not change this buffer
   */
  encode(body: Buffer, context: BodyContext): Uint8Array | Promise<Uint8Array>;
  /**
   * Returns the body that {@link encode} was called with. If decoding fails, the attempt fails. The error message is
   * logged and stored, so it must not contain any part of the body.
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
  // Copies only the functions, so that fields of the application's object, such as keys, cannot leak.
  return Object.freeze({
    encode: (body: Buffer, context: BodyContext) => codec.encode(body, context),
    decode: (stored: Buffer, context: BodyContext) => codec.decode(stored, context),
  });
}

/** Encodes and decodes the bodies of events. Without a `bodyCodec`, bodies are stored unchanged. */
@Injectable()
export class StoredBodies {
  readonly #failures: ThrottledLog;

  constructor(
    @Inject(BODY_CODEC) private readonly codec: BodyCodec | null,
    @Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime,
  ) {
    this.#failures = new ThrottledLog(new ModuleLogger('PaymentInbox'), runtime);
  }

  /** @throws PaymentsError `inbox_unavailable`. The cause is logged at most once per minute. */
  async encode(body: Buffer, { company, id }: BodyContext): Promise<Buffer> {
    if (this.codec === null) return body;
    try {
      return toBuffer(await this.codec.encode(body, { company, id }), 'encode');
    } catch (error) {
      this.#failures.warn(
        'encode',
        () =>
          `"bodyCodec" could not encode the body of event ${id} (company ${company}). The event is not stored and the ` +
          `response is 503, so that the sender sends the event again: ${describeError(error)}`,
        { company, id },
      );
      throw new PaymentsError(
        'inbox_unavailable',
        'The payment inbox could not encode the body; see the log for the error.',
      );
    }
  }

  /** @throws PaymentsError `body_undecodable`, whose `cause` is the value that the codec threw. */
  async decode(stored: Buffer, { company, id }: BodyContext): Promise<Buffer> {
    if (this.codec === null) return stored;
    try {
      return toBuffer(await this.codec.decode(stored, { company, id }), 'decode');
    } catch (cause) {
      throw new PaymentsError(
        'body_undecodable',
        `"bodyCodec" could not decode the stored body of event ${id} (company ${company}). If its key is missing, ` +
          'configure the key; the next attempt or a redrive then handles the event.',
        { cause },
      );
    }
  }

  async show(event: StoredEvent | undefined): Promise<StoredEvent | undefined> {
    if (!event?.raw) return event;
    try {
      return { ...event, raw: await this.decode(event.raw, event) };
    } catch (error) {
      return { ...event, raw: null, bodyError: describeError(error) };
    }
  }

  /**
   * Whether the body of a copy differs from the decoded body of the stored event. Call this method if the encoded
   * bodies differ. If the codec encrypts, different encoded bodies prove nothing, because such a codec never returns
   * the same bytes twice. Always `true` without a codec; `false` if the stored body was pruned or cannot be decoded.
   */
  async conflicts(body: Buffer, find: () => Promise<StoredEvent | undefined>): Promise<boolean> {
    if (this.codec === null) return true;
    const first = await this.show(await find());
    return first?.raw ? !first.raw.equals(body) : false;
  }
}

function toBuffer(bytes: unknown, method: string): Buffer {
  if (!isUint8Array(bytes)) throw new TypeError(`bodyCodec.${method}() returned no Uint8Array`);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
