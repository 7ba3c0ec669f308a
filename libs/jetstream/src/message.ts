import { headers } from '@nats-io/transport-node';
import type { Msg, MsgHdrs } from '@nats-io/transport-node';
import type { EngineAttributes, EngineMessage, TakenMessage } from 'nestjs-payments';

/** The prefix of the CloudEvents binding for NATS. */
const PREFIX = 'ce-';
/** The longest part of a subject, because a server closes a connection whose line is longer than 4,096 bytes. */
const MAX_TOKEN = 200;

/** Headers of a dead letter. */
const DEAD = {
  code: 'payments-code',
  subject: 'payments-subject',
  messageId: 'payments-message-id',
} as const;

/** Creates the headers of a message: each attribute, percent-encoded as CloudEvents prescribes. */
export function headersOf(attributes: EngineAttributes): MsgHdrs {
  const all = headers();
  for (const [name, value] of Object.entries(attributes)) all.set(PREFIX + name, encode(value));
  all.set('content-type', attributes.datacontenttype);
  return all;
}

/** Returns the id with which JetStream finds duplicates. Encoded, because the client would trim white space. */
export function messageIdOf({ id }: EngineMessage): string {
  return encode(id);
}

/** Returns the subject `<stream>.<company>.<type>`. The dots of a type separate its tokens. */
export function subjectOf(stream: string, { company, type }: EngineAttributes): string {
  return [stream, toToken(company), ...type.slice(0, MAX_TOKEN).split('.').map(toToken)].join('.');
}

/** Returns what the module reads from a message. Messages from elsewhere may have any content. */
export function takenMessage(msg: Msg): TakenMessage {
  const attributes: Record<string, string> = {};
  for (const [name, value] of headerLines(msg)) {
    if (name.startsWith(PREFIX)) attributes[name.slice(PREFIX.length)] ??= decode(value);
  }
  return { attributes, body: msg.data, deliveries: deliveryOf(msg).deliveries };
}

/** The id and the headers of the dead letter of a message. */
export function deadLetter(msg: Msg, service: string, code: string) {
  const letter = headers();
  for (const [name, value] of headerLines(msg)) {
    // The server acts on its own headers, for example by deleting other messages.
    if (!name.startsWith('nats-')) letter.append(name, value);
    else if (name === 'nats-msg-id') letter.set(DEAD.messageId, value);
  }
  letter.set(DEAD.code, code);
  letter.set(DEAD.subject, encode(msg.subject));
  const { sequence, time } = deliveryOf(msg);
  return { msgID: `${service}/${sequence}/${time}`, headers: letter };
}

/** Reads the subject to which JetStream wants the answer: `$JS.ACK`, and facts about this delivery. */
function deliveryOf({ reply = '' }: Msg) {
  const tokens = reply.split('.');
  // Newer servers have the domain and the account before the stream and the consumer.
  const [deliveries, sequence, , time] = tokens.slice(tokens.length < 11 ? 4 : 6);
  return { deliveries: Math.max(1, Number(deliveries) || 1), sequence, time };
}

/** The headers with names in lower case. A message whose headers the client cannot read has none. */
function headerLines(msg: Msg): [name: string, value: string][] {
  try {
    return [...(msg.headers ?? [])].flatMap(([name, values]) =>
      values.map((value): [string, string] => [name.toLowerCase(), value]),
    );
  } catch {
    return [];
  }
}

/** Encodes every character but printable ASCII, and `"` and `%`, as the CloudEvents binding for HTTP does. */
function encode(value: string): string {
  return value.toWellFormed().replace(/[^!#$&-~]/gu, percent);
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function toToken(text: string): string {
  const token = text
    .slice(0, MAX_TOKEN)
    .toWellFormed()
    .replace(/[^\w~-]/gu, percent);
  return token === '' ? '%' : token;
}

function percent(character: string): string {
  return Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&');
}
