import { BadRequestException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

const JSON_TYPE = /^application\/json\s*(;|$)/i;
const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;
/** Far below where what checks and writes a body, a call for each level, would run out of stack. */
const LEVELS = 500;

/**
 * Reads JSON bodies. The token endpoint knows one failure, 401, for whatever is not
 * `client_credentials` in JSON (section 7 of the service's page): there, a body that can't be read
 * is no body, and the endpoint answers for itself.
 */
export function parseBody(
  request: FastifyRequest,
  body: string | Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void {
  if (body.length === 0) return done(null, undefined);
  const url = request.routeOptions.url ?? '';
  const type = request.headers['content-type'] ?? '';
  // The checkout is a page of forms. Nothing else takes them: a form can be sent across origins.
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
  if (isDeeper(parsed, LEVELS)) {
    return lenient
      ? done(null, undefined)
      : done(new BadRequestException(`the body must be at most ${LEVELS} levels deep`));
  }
  done(null, parsed);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
