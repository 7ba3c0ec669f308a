import { unescape } from 'node:querystring';
import type { JsMsg } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import type { EngineAttributes, TakenMessage } from 'nestjs-payments';

/** The prefix of the CloudEvents binding for NATS. */
const PREFIX = 'ce-';
/** The longest part of a subject, because a server closes a connection whose line is longer than 4,096 bytes. */
const MAX_TOKEN = 200;

/** Headers of a dead letter. */
const CODE = 'payments-code';
const SUBJECT = 'payments-subject';

/** Creates the headers of a message: each attribute, percent-encoded as CloudEvents prescribes. */
export function headersOf(attributes: EngineAttributes): MsgHdrs {
  const all = headers();
  for (const [name, value] of Object.entries(attributes)) all.set(PREFIX + name, encode(value));
  all.set('content-type', attributes.datacontenttype);
  return all;
}

/** Returns the subject `<stream>.<company>.<type>`. The dots of a type separate its tokens. */
export function subjectOf(stream: string, { company, type }: EngineAttributes): string {
  return [stream, toToken(company), ...type.slice(0, MAX_TOKEN).split('.').map(toToken)].join('.');
}

/** Returns what the module reads from a message. Messages from elsewhere may have any content. */
export function takenMessage(message: JsMsg): TakenMessage {
  const attributes: Record<string, string> = {};
  for (const [name, value] of headerLines(message)) {
    if (name.startsWith(PREFIX)) attributes[name.slice(PREFIX.length)] ??= unescape(value);
  }
  return { attributes, body: message.data, deliveries: message.info.deliveryCount };
}

/** The id and the headers of the dead letter of a message. */
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

/** The headers with names in lower case. A message whose headers the client cannot read has none. */
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
