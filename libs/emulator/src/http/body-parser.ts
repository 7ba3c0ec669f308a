import { BadRequestException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

const JSON_TYPE = /^application\/json\s*(;|$)/i;
const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;
/** Maximum depth of JSON. Validation and serialisation are recursive, so much deeper JSON would overflow the stack. */
const MAX_DEPTH = 500;

/**
 * Parses JSON bodies. The service's token endpoint responds with 401 to every body that is not a JSON object with
 * `client_credentials`. For that endpoint, this function therefore parses an invalid body as undefined.
 */
export function parseBody(
  request: FastifyRequest,
  body: string | Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void {
  if (body.length === 0) return done(null, undefined);
  const url = request.routeOptions.url ?? '';
  const type = request.headers['content-type'] ?? '';
  // Only the checkout accepts forms, because browsers can send forms across origins.
  if (url.startsWith('/emulator/checkout/') && FORM.test(type)) {
    return done(null, Object.fromEntries(new URLSearchParams(body.toString())));
  }
  const lenient = url === '/v1/auth/token';
  if (!JSON_TYPE.test(type)) {
    return lenient
      ? done(null, undefined)
      : done(new UnsupportedMediaTypeException('the body must be application/json'));
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString());
  } catch {
    return lenient
      ? done(null, undefined)
      : done(new BadRequestException('the body must be valid JSON'));
  }
  if (isDeeper(parsed, MAX_DEPTH)) {
    return lenient
      ? done(null, undefined)
      : done(new BadRequestException(`the body must be at most ${MAX_DEPTH} levels deep`));
  }
  done(null, parsed);
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1));
}
