import type { Socket } from 'node:net';
import type { Channel, Connection } from 'rabbitmq-client';

// The undocumented parts of `rabbitmq-client` that the adapter uses. Checked with version 5.0.8.

/** The name of the field with the version, after its length and before the type of a text, whose length follows. */
const VERSION = '\u0007versionS';

/**
 * Resolves with the version of the server, such as `3.10.8`, or with `undefined` if it cannot be read. Call this function
 * in the same turn of the event loop in which the connection was created. The client reads the properties of the server
 * from its first frame, and drops them.
 */
export function versionOf(connection: Connection): Promise<string | undefined> {
  const { _socket: socket } = connection as unknown as { readonly _socket?: Socket };
  return new Promise((resolve) => {
    const read = (bytes: Buffer): void => {
      const at = bytes.indexOf(VERSION);
      if (at === -1) return;
      const start = at + VERSION.length + 4;
      resolve(bytes.toString('utf8', start, start + bytes.readUInt32BE(start - 4)));
    };
    // The client takes the bytes with read(), so this listener gets them too, and does not start the flow.
    socket?.on('data', read);
    connection.once('connection', () => {
      socket?.off('data', read);
      resolve(undefined);
    });
  });
}

/**
 * Lets a channel pass the body of each message as a Buffer. Otherwise the client parses JSON and decodes text if the
 * message has no content encoding, and the bytes that were signed are lost.
 */
export function keepBytes(channel: Channel): void {
  const internals = channel as unknown as {
    _onHeader?: (frame: { fields: { contentEncoding?: string } }) => void;
  };
  const { _onHeader: onHeader } = internals;
  if (onHeader === undefined) return;
  internals._onHeader = (frame) => {
    // Not enumerable, so that the message does not get the property.
    if (!frame.fields.contentEncoding) {
      Object.defineProperty(frame.fields, 'contentEncoding', { value: 'none', enumerable: false });
    }
    onHeader.call(channel, frame);
  };
}
