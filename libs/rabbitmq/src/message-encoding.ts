import { Buffer } from 'node:buffer';
import type { EngineMessage, TakenMessage } from 'nestjs-payments';
import type { AsyncMessage, Envelope } from 'rabbitmq-client';

/**
 * The prefix of header names in the CloudEvents binding for AMQP. Some clients write `cloudEvents_`, because names of
 * properties in JMS must not contain a colon.
 */
const PREFIX = 'cloudEvents:';
const ATTRIBUTE = /^cloudEvents[:_](.+)$/s;
/** The header of a dead letter that contains the code of the error. */
const CODE = 'payments-code';
/** Maximum number of bytes that the other properties of a message need in the frame that contains the headers. */
const OTHER_PROPERTIES = 2048;

/** A message in the form in which the client publishes it. */
export interface Outgoing {
  readonly envelope: Envelope;
  readonly body: Buffer;
}

/**
 * Encodes a message in the binary mode of CloudEvents: each attribute becomes a header, and the body does not change.
 *
 * @param frameMax the maximum size of a frame in bytes; one frame contains all headers
 * @throws Error if the attributes do not fit into a frame. Without this check, the client would close the channel, and
 *   all messages in progress would fail.
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

/** Decodes a message. A message that another program published may have few attributes or none. */
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

/**
 * Returns the dead letter for a rejected message. It contains the body, the code of the error, and the attributes if
 * they fit into a frame.
 */
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

/**
 * Returns the bytes of a body that the client has decoded as text or JSON. The client does this only for messages
 * without a content encoding, which only other programs publish.
 */
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
 * Whether the headers fit into a frame. Compares the length of the headers as JSON, which is not shorter than their
 * encoding in the frame.
 */
function fits(headers: object, frameMax: number): boolean {
  return Buffer.byteLength(JSON.stringify(headers)) <= frameMax - OTHER_PROPERTIES;
}

/**
 * Returns a text, or an empty text if the text is longer than AMQP allows. Neither routing nor de-duplication needs a
 * longer text.
 */
function short(text: string): string {
  return Buffer.byteLength(text) <= 255 ? text : '';
}
