import { plainToInstance } from 'class-transformer';
import { validate } from 'class-validator';
import type { ValidationError } from 'class-validator';
import { badRequest } from './console-exception.filter.js';

/** Validates the fields of a query. @throws ConsoleException 400 that names the first field that is not valid. */
export function validQuery<T extends object>(dto: new () => T, query: object): Promise<T> {
  return validated(dto, query, 'query');
}

/** Validates a body. @throws ConsoleException 400 that names the first field that is not valid. */
export async function validBody<T extends object>(dto: new () => T, body: unknown): Promise<T> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badRequest(`The body must be a JSON object with: ${fieldsOf(dto)}.`);
  }
  return validated(dto, body, 'body');
}

/** Validates without a Nest pipe, because the application that imports the console configures the global pipes. */
async function validated<T extends object>(
  dto: new () => T,
  plain: object,
  source: 'query' | 'body',
): Promise<T> {
  const request = plainToInstance(dto, plain);
  const [error] = await validate(request, { whitelist: true, forbidNonWhitelisted: true });
  if (error !== undefined) throw badRequest(describe(error, source));
  return request;
}

function describe(error: ValidationError, source: 'query' | 'body', parent = ''): string {
  const { property, value, target, constraints = {}, children = [] } = error;
  const name = property.slice(0, 40);
  const path = /^\d+$/.test(name) ? `${parent}[${name}]` : [parent, name].filter(Boolean).join('.');
  if ('whitelistValidation' in constraints) {
    const known = fieldsOf(target!.constructor as new () => object);
    return `The ${source} must not have the field ${JSON.stringify(path)}. Its fields are: ${known}.`;
  }
  const [rule] = Object.values(constraints);
  if (rule !== undefined) {
    return `"${path}" ${value === undefined ? 'is missing. It ' : ''}must be ${rule}.`;
  }
  return describe(children[0]!, source, path);
}

/**
 * Returns the names of a class's fields. With the compiler option `useDefineForClassFields`, an instance has all
 * fields, even those without a value.
 */
function fieldsOf(dto: new () => object): string {
  return Object.keys(new dto()).join(', ');
}
