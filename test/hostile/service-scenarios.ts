import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** A response of the hostile service. The service writes the pieces, then `repeat` until the connection ends. */
export interface Scenario {
  readonly pieces: readonly (string | Uint8Array)[];
  readonly repeat?: string | Uint8Array;
  /** Milliseconds between two pieces. Default 0. */
  readonly pauseMs?: number;
  /** How the service ends the connection after the last piece. Default `end`. */
  readonly ending?: 'end' | 'reset' | 'nothing';
  /** Whether the call may resolve with a value. Default `false`. */
  readonly mayResolve?: boolean;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const JSON_BODY = '{"status":"complete"}';
const LARGE = Buffer.alloc(64 * 1024, ' ');
const ZEROS = Buffer.alloc(64 * 1024 ** 2);
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

function response(lines: string, body: string | Uint8Array, length = body.length): Scenario {
  const head = `HTTP/1.1 ${lines}\r\nContent-Length: ${length}\r\n\r\n`;
  return { pieces: [head, body] };
}
function encoded(encoding: string, body: Uint8Array): Scenario {
  return response(
    `200 OK\r\nContent-Type: application/json\r\nContent-Encoding: ${encoding}`,
    body,
  );
}
function json(body: string): Scenario {
  return response('200 OK\r\nContent-Type: application/json', body);
}
function redirect(location: string): Scenario {
  return response(`302 Found\r\nLocation: ${location}`, '');
}

/**
 * Responses of a hostile or broken service, by name.
 *
 * @param trap address of a server that the application must never call
 */
export function scenarios(trap: string): Readonly<Record<string, Scenario>> {
  return {
    fine: { ...json(JSON_BODY), mayResolve: true },
    'endless chunks': { pieces: [CHUNKED], repeat: chunk(LARGE), ending: 'nothing' },
    'endless chunks of one byte': { pieces: [CHUNKED], repeat: '1\r\n \r\n'.repeat(10_000) },
    'endless body': { pieces: [`${OK}\r\n`], repeat: LARGE },
    'body of 1 TB': { pieces: [`${OK}Content-Length: 1099511627776\r\n\r\n`], repeat: LARGE },
    trickle: { pieces: [`${OK}Content-Length: 1000\r\n\r\n`], repeat: '{', pauseMs: 100 },
    'trickle of a head': { pieces: ['HTTP/1.1 200 OK\r\nX: '], repeat: 'x', pauseMs: 100 },
    silence: { pieces: [], ending: 'nothing' },
    'gzip bomb': encoded('gzip', gzipSync(ZEROS)),
    'gzip bomb of two layers': encoded('gzip, gzip', gzipSync(gzipSync(ZEROS))),
    'brotli bomb': encoded('br', brotliCompressSync(ZEROS, BROTLI)),
    'gzip cut short': encoded('gzip', gzipSync(JSON_BODY).subarray(0, 20)),
    'invalid gzip': encoded('gzip', Buffer.from(JSON_BODY)),
    'many encodings': encoded(Array.from({ length: 50 }, () => 'gzip').join(', '), gzipSync('{}')),
    'redirect to another host': redirect(`${trap}/stolen`),
    'redirect to a file': redirect('file:///etc/passwd'),
    'redirect without a target': response('301 Moved', ''),
    'redirect to itself': redirect('/v1/transactions/redirect'),
    'length too long': response('200 OK\r\nContent-Type: application/json', JSON_BODY, 1000),
    'length too short': { ...response('200 OK', JSON_BODY, 5), mayResolve: false },
    'negative length': response('200 OK', JSON_BODY, -1),
    'two lengths': response('200 OK\r\nContent-Length: 5', JSON_BODY),
    'length and chunks': response('200 OK\r\nTransfer-Encoding: chunked', JSON_BODY),
    'chunks cut short': { pieces: [CHUNKED, '15\r\n{"status"'] },
    'invalid chunk size': { pieces: [CHUNKED, 'zz\r\n{}\r\n0\r\n\r\n'] },
    'missing last chunk': { pieces: [CHUNKED, chunk(Buffer.from(JSON_BODY))] },
    'flood of 1xx': {
      pieces: [],
      repeat: 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(500),
      pauseMs: 1,
    },
    'switching protocols': {
      pieces: ['HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
    },
    'huge head': { pieces: ['HTTP/1.1 200 OK\r\n'], repeat: `X: ${'x'.repeat(8000)}\r\n` },
    'many headers': { pieces: ['HTTP/1.1 200 OK\r\n'], repeat: 'a: b\r\n'.repeat(1000) },
    'HTML instead of JSON': response('200 OK\r\nContent-Type: text/html', '<h1>hello</h1>'),
    'invalid JSON': json('{"status":'),
    'deep JSON': {
      ...json(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
      mayResolve: true,
    },
    'prototype in JSON': { ...json('{"__proto__":{"polluted":1}}'), mayResolve: true },
    'JSON null': json('null'),
    'JSON number': json('1e400'),
    'JSON array': json('[1]'),
    'invalid UTF-8': {
      ...json('{"a":"\xff"}'),
      pieces: [`${OK}Content-Length: 9\r\n\r\n`, Buffer.from('7b2261223a22ff227d', 'hex')],
      mayResolve: true,
    },
    'empty body': json(''),
    '204 with a body': response('204 No Content', JSON_BODY),
    'early close': { pieces: [] },
    'early reset': { pieces: ['HTTP/1.1 200'], ending: 'reset' },
    'reset within the body': { pieces: [`${OK}Content-Length: 100\r\n\r\n`, '{'], ending: 'reset' },
    'not HTTP': { pieces: ['SSH-2.0-OpenSSH_9.9\r\n'] },
    'status 999': response('999 Odd', JSON_BODY),
    'status 99': response('99 Odd', JSON_BODY),
    'error with a large body': response('500 Oops', Buffer.alloc(6 * 1024 ** 2, 'x')),
    'unauthorized, always': response('401 Unauthorized', '{}'),
    'retry in a year': response('503 Busy\r\nRetry-After: 31536000', '{}'),
    'retry at once': response('429 Slow Down\r\nRetry-After: -1', '{}'),
  };
}

/** Responses of the token endpoint without a usable token. */
export const INVALID_TOKEN_RESPONSES: readonly Scenario[] = [
  json('null'),
  json('{"access_token":1}'),
  json('{"access_token":"a\\r\\nX-Injected: 1","expires_in":3600}'),
  json(`{"access_token":"${'a'.repeat(70_000)}"}`),
  response('200 OK\r\nContent-Type: text/html', '<h1>log in</h1>'),
  response('500 Oops', 'x'),
  response('302 Found\r\nLocation: file:///etc/passwd', ''),
  { pieces: [] },
  { pieces: [CHUNKED], repeat: chunk(LARGE) },
  { pieces: [OK], repeat: 'x', pauseMs: 100 },
];

export const TOKEN = json(
  '{"access_token":"access-token-7Qm1","token_type":"Bearer","expires_in":3600}',
);

function chunk(bytes: Uint8Array): Buffer {
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ]);
}
