import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { jetStream } from './jet-stream.js';
import { resolveOptions } from './jet-stream-options.js';
import type { JetStreamOptions } from './jet-stream-options.js';

const VALID = { servers: 'nats://nats.internal:4222', stream: 'PAYMENTS' };

describe('jetStream() options', () => {
  it('jetStream() has defaults for its options', () => {
    expect(resolveOptions(VALID)).toMatchObject({
      stream: 'PAYMENTS',
      service: undefined,
      setup: 'create',
      maxInProgress: 100,
      verify: true,
      connection: { servers: ['nats.internal:4222'], reconnect: false, name: 'nestjs-payments' },
    });
    expect(jetStream({ ...VALID, service: 'ledger', verify: false }).verify).toBe(false);
  });

  it('jetStream() reads user and password from the first address', () => {
    const servers = ['nats://shop:p%40ss@a:4222', 'b', 'nats://[::1]:4333/'];
    expect(resolveOptions({ ...VALID, servers }).connection).toMatchObject({
      servers: ['a:4222', 'b', '[::1]:4333'],
      user: 'shop',
      pass: 'p@ss',
    });
  });

  it.each<[string, object, RegExp]>([
    ['no options', undefined as never, /"jetStream" must be an object/],
    ['an unknown name', { ...VALID, streem: 'x' }, /no option "jetStream.streem".*servers, stream/],
    ['no stream', { servers: 'a' }, /"jetStream.stream" must be 1 to 100 of/],
    ['a dot in the stream', { ...VALID, stream: 'a.b' }, /"jetStream.stream" must be/],
    ['a wildcard in the service', { ...VALID, service: 'a*' }, /"jetStream.service" must be/],
    ['an empty service', { ...VALID, service: '' }, /"jetStream.service" must be/],
    ['a wrong setup', { ...VALID, setup: 'none' }, /setup" must be 'create' \(default\)/],
    [
      'no message in progress',
      { ...VALID, maxInProgress: 0 },
      /maxInProgress" must be.*1 to 10000/,
    ],
    ['too many in progress', { ...VALID, maxInProgress: 10_001 }, /maxInProgress" must be/],
    ['a text for verify', { ...VALID, verify: 'yes' }, /verify" must be true or false/],
    ['no servers', { stream: 'PAYMENTS' }, /servers" must be one or more addresses/],
    ['an empty list', { ...VALID, servers: [] }, /servers" must be/],
    ['a number for servers', { ...VALID, servers: 4222 }, /servers" must be/],
    [
      'another protocol',
      { ...VALID, servers: 'tls://u:s3cret@a' },
      /For TLS, set "connection.tls"/,
    ],
    ['a list with a number', { ...VALID, servers: ['a', 4222] }, /servers" must be/],
    ['a wrong address', { ...VALID, servers: 'nats://u:s3cret@a:port' }, /servers" must be/],
    ['a text for connection', { ...VALID, connection: 's3cret' }, /connection" must be an object/],
  ])('jetStream() rejects %s', (_, options, message) => {
    let thrown: unknown;
    try {
      jetStream(options as JetStreamOptions);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      code: 'options_invalid',
      message: expect.stringMatching(message),
    });
    expect(inspect(thrown)).not.toContain('s3cret');
  });

  it('the options of jetStream() show no password', () => {
    const engine = jetStream({ ...VALID, servers: 'nats://shop:s3cret@a', service: 'ledger' });
    const shown = inspect(engine, { depth: 10, showHidden: true }) + JSON.stringify(engine);
    expect(shown).not.toContain('s3cret');
  });
});
