import { Buffer } from 'node:buffer';
import type { EngineMessage, TakenMessage } from 'nestjs-payments';
import type { AsyncMessage, Envelope } from 'rabbitmq-client';

/** The prefix of the CloudEvents binding for AMQP. Some clients write `_`, which names of JMS may contain. */
const PREFIX = 'cloudEvents:';
const ATTRIBUTE = /^cloudEvents[:_](.+)$/s;
/** The header of a dead letter with the code of the error. */
const CODE = 'payments-code';
/** In a frame with headers, the other properties of a message need at most this many bytes. */
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
export function toOutgoing(message: EngineMessage, exchange: string, frameMax: number): Outgoing {
  const { id, attributes } = message;
  const headers = headersOf(attributes);
  if (!fits(headers, frameMax)) {
    throw new Error(
      `The attributes of the event do not fit into a frame of ${frameMax} bytes. Set "connection.frameMax" to a larger ` +
        'value, at most the setting frame_max of the server.',
    );
  }
  const names = { routingKey: short(attributes.type), messageId: short(id) };
  return outgoing(message, { exchange, headers, ...names });
}

/** Decodes a message. A message that the module did not write has few attributes or none. */
export function toTaken({ headers = {}, contentType, redelivered, body }: AsyncMessage) {
  const attributes: Record<string, string> = {};
  for (const [header, value] of Object.entries(headers)) {
    const name = ATTRIBUTE.exec(header)?.[1];
    if (name !== undefined && typeof value !== 'object') attributes[name] = String(value);
  }
  if (contentType !== undefined) attributes['datacontenttype'] = contentType;
  const count: unknown = headers['x-delivery-count'];
  return {
    attributes,
    body: body instanceof Uint8Array ? body : bytesOf(body),
    deliveries: Math.max(typeof count === 'number' ? count + 1 : 1, redelivered ? 2 : 1),
  } satisfies TakenMessage;
}

/** Returns a rejected message as it is kept in the queue of dead letters: the body, the attributes if they fit, the code. */
export function toDeadLetter(
  message: AsyncMessage,
  queue: string,
  code: string,
  frameMax: number,
): Outgoing {
  const taken = toTaken(message);
  const all = headersOf(taken.attributes);
  const headers = { ...(fits(all, frameMax) && all), [CODE]: code };
  return outgoing(taken, { exchange: '', routingKey: queue, headers });
}

/** The client decodes text and parses JSON without a content encoding, which only other programs publish. */
function bytesOf(value: unknown): Buffer {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}

type Content = Pick<TakenMessage, 'attributes' | 'body'>;

function outgoing({ attributes, body }: Content, envelope: Envelope): Outgoing {
  const contentType = attributes['datacontenttype'];
  return {
    // The body is JSON, which is always UTF-8. Without this property, some clients replace the body by the parsed
    // value.
    envelope: { contentEncoding: 'utf-8', ...(contentType && { contentType }), ...envelope },
    // The client would publish a Uint8Array as JSON.
    body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
  };
}

function headersOf(attributes: TakenMessage['attributes']) {
  const others = Object.entries(attributes).filter(([name]) => name !== 'datacontenttype');
  return Object.fromEntries(others.map(([name, value]) => [PREFIX + name, value]));
}

/**
 * Whether the headers fit into a frame. Compares the length of their JSON, which is at least as long as their encoding
 * in the frame.
 */
function fits(headers: object, frameMax: number): boolean {
  return Buffer.byteLength(JSON.stringify(headers)) <= frameMax - OTHER_PROPERTIES;
}

/** AMQP cannot carry longer names; neither routing nor de-duplication needs them. */
function short(text: string): string {
  return Buffer.byteLength(text) <= 255 ? text : '';
}
