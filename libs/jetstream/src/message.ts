import { unescape } from 'node:querystring';
import type { JsMsg } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import type { EngineAttributes, TakenMessage } from 'nestjs-payments';

/** The prefix of the CloudEvents binding for NATS. */
const PREFIX = 'ce-';
/**
 * Maximum number of characters of a part of a subject. A longer subject could make a line of the protocol longer than
 * 4,096 bytes, and the server closes a connection with such a line.
 */
const MAX_TOKEN = 200;

/** Headers of a dead letter. */
const CODE = 'payments-code';
const SUBJECT = 'payments-subject';

/**
 * Creates the headers of a message, one for each attribute. The values are percent-encoded, as CloudEvents prescribes.
 */
export function headersOf(attributes: EngineAttributes): MsgHdrs {
  const all = headers();
  for (const [name, value] of Object.entries(attributes)) all.set(PREFIX + name, encode(value));
  all.set('content-type', attributes.datacontenttype);
  return all;
}

/** Returns the subject `<stream>.<company>.<type>`. The dots in an event type separate tokens of the subject. */
export function subjectOf(stream: string, { company, type }: EngineAttributes): string {
  return [stream, toToken(company), ...type.slice(0, MAX_TOKEN).split('.').map(toToken)].join('.');
}

/**
 * Returns the parts of a message that the module reads. A message that another program published may have any content.
 */
export function takenMessage(message: JsMsg): TakenMessage {
  const attributes: Record<string, string> = {};
  for (const [name, value] of headerLines(message)) {
    if (name.startsWith(PREFIX)) attributes[name.slice(PREFIX.length)] ??= unescape(value);
  }
  return { attributes, body: message.data, deliveries: message.info.deliveryCount };
}

/** Returns the id and the headers of the dead letter for a message. */
export function deadLetter(message: JsMsg, service: string, code: string) {
  const letter = headers();
  for (const [name, value] of headerLines(message)) {
    // The server acts on its own headers, for example by deleting other messages.
    if (!name.startsWith('nats-')) letter.append(name, value);
  }
  letter.set(CODE, code);
  letter.set(SUBJECT, encode(message.subject));
  return { msgID: `${service}/${message.seq}/${message.timestampNanos}`, headers: letter };
}

/** Returns the headers of a message, with names in lower case. Returns no headers if the client cannot read them. */
function headerLines(message: JsMsg): [name: string, value: string][] {
  try {
    return [...(message.headers ?? [])].flatMap(([name, values]) =>
      values.map((value): [string, string] => [name.toLowerCase(), value]),
    );
  } catch {
    return [];
  }
}

/**
 * Percent-encodes `"`, `%` and every character that is not printable ASCII, as the CloudEvents binding for HTTP does.
 */
export function encode(value: string): string {
  return value.toWellFormed().replace(/[^!#$&-~]/gu, percent);
}

function toToken(text: string): string {
  const start = text.slice(0, MAX_TOKEN).toWellFormed();
  return start.replace(/[^\w~-]/gu, percent) || '%';
}

function percent(character: string): string {
  return Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&');
}
