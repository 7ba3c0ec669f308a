import { Buffer } from 'node:buffer';
import type { EngineMessage, TakenMessage } from 'nestjs-payments';
import type { AsyncMessage, Envelope } from 'rabbitmq-client';

/** The prefix of the CloudEvents binding for AMQP. Some clients write `_`, which names of JMS may contain. */
const PREFIX = 'cloudEvents:';
const ATTRIBUTE = /^cloudEvents[:_](.+)$/s;
/** The header of a dead letter with the code of the error. */
const CODE = 'payments-code';

/** Bytes of a frame with headers that the other properties of a message need at most. */
const OTHER_PROPERTIES = 2048;

/** A message in the form of the client. */
export interface Outgoing {
  readonly envelope: Envelope;
  readonly body: Buffer;
}

/**
 * Encodes a message in binary mode: each attribute is a header, and the body stays as it is.
 *
 * @param frameMax the largest frame in bytes, which contains all headers
 * @throws Error if the attributes are too large. The client would close the channel, with all messages in progress.
 */
export function toOutgoing(
  { id, attributes, body }: EngineMessage,
  exchange: string,
  frameMax: number,
): Outgoing {
  const { datacontenttype, ...others } = attributes;
  const headers = Object.entries(others).map(([name, value]) => [PREFIX + name, value] as const);
  if (fitting(headers, frameMax).length < headers.length) {
    const fix =
      'Set "connection.frameMax" to a larger value, at most the setting frame_max of the server.';
    throw new Error(
      `The attributes of the event do not fit into a frame of ${frameMax} bytes. ${fix}`,
    );
  }
  return {
    envelope: {
      exchange,
      routingKey: short(attributes.type) ?? '',
      contentType: datacontenttype,
      // JSON is UTF-8 always. Without this property, some clients replace the body by the parsed value.
      contentEncoding: 'utf-8',
      headers: Object.fromEntries(headers),
      messageId: short(id),
    } as Envelope,
    body: bufferOf(body),
  };
}

/** Decodes a message. A message that the module did not write has few attributes or none. */
export function toTaken(message: AsyncMessage): TakenMessage {
  const { headers = {}, contentType, redelivered } = message;
  const attributes = Object.entries(headers).flatMap(([header, value]: [string, unknown]) => {
    const name = ATTRIBUTE.exec(header)?.[1];
    const simple = ['string', 'number', 'boolean'].includes(typeof value);
    return name !== undefined && simple ? [[name, String(value)] as const] : [];
  });
  const count: unknown = headers['x-delivery-count'];
  return {
    attributes: {
      ...Object.fromEntries(attributes),
      ...(contentType !== undefined && { datacontenttype: contentType }),
    },
    body: bodyOf(message),
    deliveries: Math.max(typeof count === 'number' ? count + 1 : 1, redelivered ? 2 : 1),
  };
}

/**
 * Returns a rejected message as it is kept in the queue of dead letters: the code, the body, and those headers that are
 * texts and fit into a frame. The client cannot encode all headers that it can decode.
 */
export function toDeadLetter(
  message: AsyncMessage,
  queue: string,
  code: string,
  frameMax: number,
): Outgoing {
  const { headers = {}, contentType, contentEncoding, messageId, timestamp, type, appId } = message;
  const texts = Object.entries(headers).filter(([, value]) => typeof value === 'string');
  return {
    envelope: {
      exchange: '',
      routingKey: queue,
      headers: { ...Object.fromEntries(fitting(texts, frameMax)), [CODE]: code },
      contentType,
      contentEncoding,
      messageId,
      timestamp,
      type,
      appId,
    } as Envelope,
    body: bodyOf(message),
  };
}

/** Returns the headers that fit into a frame. */
function fitting<T extends readonly [string, string]>(
  headers: readonly T[],
  frameMax: number,
): T[] {
  let left = frameMax - OTHER_PROPERTIES;
  return headers.filter(([name, value]) => {
    // Besides the texts, a header has one byte for its type and five for the two lengths.
    const size = Buffer.byteLength(name) + Buffer.byteLength(value) + 6;
    if (size > left) return false;
    left -= size;
    return true;
  });
}

/** The body. If a version of the client parsed it, the bytes are those of the value. */
function bodyOf({ body }: AsyncMessage): Buffer {
  if (body instanceof Uint8Array) return bufferOf(body);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? null));
}

/** The client would publish a Uint8Array as JSON. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** AMQP cannot carry longer names; neither routing nor de-duplication needs them. */
function short(text: string): string | undefined {
  return Buffer.byteLength(text) <= 255 ? text : undefined;
}
