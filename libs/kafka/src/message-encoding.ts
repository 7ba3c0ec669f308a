import { Buffer } from 'node:buffer';
import type { Message, MessageToProduce } from '@platformatic/kafka';
import type { EngineMessage, TakenMessage } from 'nestjs-payments';

/** The prefix of the CloudEvents binding for Kafka. */
const PREFIX = 'ce_';
const CONTENT_TYPE = 'content-type';
/** The header of a dead letter with the code of the error. */
const CODE = 'payments-code';

/** Encodes a message in binary mode: each attribute is a header, and the body stays as it is. */
export function toRecord(
  { key, attributes, body }: EngineMessage,
  topic: string,
): MessageToProduce {
  const { datacontenttype, ...others } = attributes;
  const headers = new Map([[Buffer.from(CONTENT_TYPE), Buffer.from(datacontenttype)]]);
  for (const [name, value] of Object.entries(others)) {
    headers.set(Buffer.from(PREFIX + name), Buffer.from(value));
  }
  const value = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return { topic, key: Buffer.from(key), value, headers };
}

/** Decodes a message. A message that the module did not write has few attributes or none. */
export function toTaken({ headerEntries, value }: Message, deliveries: number): TakenMessage {
  const attributes: Record<string, string> = {};
  for (const [header, content] of headerEntries as readonly [Buffer, Buffer | undefined][]) {
    const name = String(header);
    if (content === undefined) continue;
    if (name === CONTENT_TYPE) attributes['datacontenttype'] = String(content);
    else if (name.startsWith(PREFIX)) attributes[name.slice(PREFIX.length)] = String(content);
  }
  return { attributes, body: value ?? Buffer.alloc(0), deliveries };
}

/** Returns a rejected message as it is kept in the topic of dead letters: key, headers and body, and the code. */
export function toDeadLetter(message: Message, topic: string, code: string): MessageToProduce {
  const { key, value } = message;
  const headers = new Map([...message.headers, [Buffer.from(CODE), Buffer.from(code)]]);
  return { topic, key, value, headers };
}
